//===- System.cpp - Systems that are built in -----------------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Figures of accelerators are those that their vendors publish: dense products, without sparsity; NVLink and network
// bandwidth in one direction for each GPU. Latencies are those of a small collective's step, as commonly measured.
//
//===----------------------------------------------------------------------===//

#include "nd/Cost/System.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace nd;

namespace {

constexpr double kGiga = 1e9, kTera = 1e12, kMicro = 1e-6;

/// A node of eight GPUs, each with its own link into the network.
System eightGpus(llvm::StringRef name, std::map<std::string, double> flops, double memory, double memoryBandwidth,
                 double nvlink, double network) {
  System system;
  system.name = name.str();
  system.flops = std::move(flops);
  system.memoryBytes = memory;
  system.memoryBandwidth = memoryBandwidth;
  system.insideNode = {nvlink, 2 * kMicro};
  system.betweenNodes = {network, 6 * kMicro};
  system.ranksPerNode = 8;
  return system;
}

/// One core of an ordinary server CPU: what a rank of a test has. Ranks move data themselves, in the wait.
System host() {
  System system;
  system.name = "host";
  system.flops = {{"f32", 100 * kGiga}, {"bf16", 200 * kGiga}, {"f64", 50 * kGiga}};
  system.memoryBytes = 8 * kGiga;
  system.memoryBandwidth = 10 * kGiga;
  system.insideNode = {5 * kGiga, 5 * kMicro};
  system.betweenNodes = {1.25 * kGiga, 30 * kMicro};
  system.overlap = false;
  system.published = false;
  return system;
}

std::map<std::string, double> rates(double f32, double bf16, double f64) {
  return {{"f32", f32 * kTera}, {"bf16", bf16 * kTera}, {"f16", bf16 * kTera}, {"f64", f64 * kTera}};
}

} // namespace

llvm::ArrayRef<System> System::builtIn() {
  static const System systems[] = {
      host(),
      eightGpus("a100x8", rates(19.5, 312, 19.5), 80 * kGiga, 2.039 * kTera, 300 * kGiga, 25 * kGiga),
      eightGpus("h100x8", rates(67, 989, 67), 80 * kGiga, 3.35 * kTera, 450 * kGiga, 50 * kGiga),
      eightGpus("h200x8", rates(67, 989, 67), 141 * kGiga, 4.8 * kTera, 450 * kGiga, 50 * kGiga),
      eightGpus("b200x8", rates(75, 2250, 37), 180 * kGiga, 7.7 * kTera, 900 * kGiga, 50 * kGiga),
  };
  return systems;
}

llvm::Expected<System> System::find(llvm::StringRef nameOrPath) {
  std::string names;
  for (const System &system : builtIn()) {
    if (nameOrPath == system.name)
      return system;
    names += (names.empty() ? "" : ", ") + system.name;
  }
  auto buffer = llvm::MemoryBuffer::getFile(nameOrPath, /*IsText=*/true);
  if (!buffer)
    return llvm::createStringError("--system=" + nameOrPath.str() + ": is neither a built-in system (" + names +
                                   ") nor a file that can be read: " + buffer.getError().message());
  return parse((*buffer)->getBuffer(), nameOrPath);
}

double System::flopsOf(llvm::StringRef type) const {
  auto it = flops.find(type.str());
  return it == flops.end() ? flops.at("f32") : it->second;
}
