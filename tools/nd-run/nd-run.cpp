//===- nd-run.cpp - Runs a compiled program -------------------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "nd/Launch/Call.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/WithColor.h"

using namespace llvm;

namespace {

cl::OptionCategory category("nd-run options");
cl::opt<std::string> program(cl::Positional, cl::Required, cl::desc("<program folder>"), cl::cat(category));
cl::opt<int> threads("threads", cl::desc("Threads of each rank (default: cores / ranks, at least 1)"), cl::init(0),
                     cl::cat(category));
cl::opt<std::string> call("call", cl::desc("Run the program once on the tensors of this safetensors file"),
                          cl::value_desc("in.safetensors"), cl::cat(category));
cl::opt<std::string> output("o", cl::desc("Where --call writes the results"), cl::value_desc("out.safetensors"),
                            cl::cat(category));

Error runProgram() {
  Expected<nd::launch::Manifest> manifest = nd::launch::readManifest(program);
  if (!manifest)
    return manifest.takeError();
  if (call.empty() || output.empty())
    return nd::launch::failure("give --call in.safetensors -o out.safetensors");
  return nd::launch::callProgram(*manifest, call, output, threads);
}

} // namespace

int main(int argc, char **argv) {
  InitLLVM initialize(argc, argv);
  cl::HideUnrelatedOptions(category);
  cl::ParseCommandLineOptions(argc, argv, "Runs a program that nd-compile made, one process a rank.\n");
  if (Error error = runProgram()) {
    WithColor::error(errs(), "nd-run") << toString(std::move(error)) << '\n';
    return 1;
  }
  return 0;
}
