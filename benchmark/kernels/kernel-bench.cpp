//===- kernel-bench.cpp - How long generated kernels take -----------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// kernel-bench FILE.mlir [v3|v4]: decomposes each function, cuts it into kernels, compiles them, and prints the best
// time of one thread over the whole work, with the bytes of the operands and results per second. Results are in place
// where they may be.
//
//===----------------------------------------------------------------------===//

#include "nd/Codegen/Host/ObjectEmitter.h"
#include "nd/Codegen/Kernels/KernelEmitter.h"
#include "nd/Codegen/Kernels/Passes.h"
#include "nd/Dialect/ND/Transforms/Passes.h"
#include "nd/Runtime/Core/ABI.h"

#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Program.h"

#include <chrono>
#include <dlfcn.h>

using namespace mlir;
using namespace nd;

static int64_t bytesOf(MemRefType type) {
  return type.getNumElements() * std::max<int64_t>(type.getElementTypeBitWidth() / 8, 1);
}

static double measure(llvm::function_ref<void()> run) {
  double best = 1e30, total = 0;
  for (int round = 0; round < 200 && (round < 5 || total < 1.0); ++round) {
    auto start = std::chrono::steady_clock::now();
    run();
    double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    best = std::min(best, seconds), total += seconds;
  }
  return best;
}

static LogicalResult benchmark(KernelOp kernel, StringRef name, CpuLevel level) {
  KernelSpec spec;
  spec.op = kernel;
  auto layout = [](Value value) {
    auto type = cast<RankedTensorType>(value.getType());
    return MemRefType::get(type.getShape(), type.getElementType());
  };
  llvm::transform(kernel.getInputs(), std::back_inserter(spec.inputTypes), layout);
  llvm::transform(kernel.getResults(), std::back_inserter(spec.resultTypes), layout);
  spec.inPlaceOf.resize(spec.resultTypes.size());
  llvm::DenseSet<unsigned> taken;
  for (unsigned result = 0; result < spec.resultTypes.size(); ++result)
    for (unsigned input = 0; input < spec.inputTypes.size() && !spec.inPlaceOf[result]; ++input)
      if (!taken.contains(input) &&
          canComputeInPlace(kernel, result, input, spec.inputTypes[input], spec.resultTypes[result])) {
        spec.inPlaceOf[result] = input;
        taken.insert(input);
      }

  FailureOr<KernelPlan> plan = planKernel(spec);
  OwningOpRef<ModuleOp> module(ModuleOp::create(kernel.getLoc()));
  OpBuilder builder = OpBuilder::atBlockBegin(module->getBody());
  if (failed(plan) || failed(emitKernel(builder, spec, *plan, "kernel")))
    return failure();
  SmallString<128> object, shared;
  if (llvm::sys::fs::createTemporaryFile("kernel", "o", object) ||
      llvm::sys::fs::createTemporaryFile("kernel", "so", shared))
    return kernel.emitError("cannot create temporary files");
  if (llvm::Error error = emitObject(*module, level, object))
    return kernel.emitError(llvm::toString(std::move(error)));
  StringRef arguments[] = {ND_LINKER, "-shared", "-o", shared, object};
  if (llvm::sys::ExecuteAndWait(ND_LINKER, arguments) != 0)
    return kernel.emitError("linking failed");
  void *library = dlopen(shared.c_str(), RTLD_NOW);
  llvm::sys::fs::remove(object);
  llvm::sys::fs::remove(shared);
  auto main = reinterpret_cast<nd_kernel>(library ? dlsym(library, "kernel") : nullptr);
  auto finish = reinterpret_cast<nd_kernel>(library ? dlsym(library, "kernel_finish") : nullptr);
  if (!main)
    return kernel.emitError("the kernel cannot be loaded");

  SmallVector<void *> pointers;
  int64_t bytes = 0;
  auto allocate = [&](int64_t size) {
    void *memory = std::aligned_alloc(64, llvm::alignTo(size + 64, 64));
    std::memset(memory, 0, size + 64);
    return memory;
  };
  for (MemRefType type : spec.inputTypes)
    pointers.push_back(allocate(bytesOf(type))), bytes += bytesOf(type);
  for (auto [type, input] : llvm::zip(spec.resultTypes, spec.inPlaceOf)) {
    bytes += bytesOf(type);
    if (!input)
      pointers.push_back(allocate(bytesOf(type)));
  }
  if (plan->workspaceBytes)
    pointers.push_back(allocate(plan->workspaceBytes));
  pointers.push_back(allocate(plan->scratchBytes));
  void *scratch = pointers.back();
  double seconds = measure([&] {
    main(pointers.data(), 0, plan->extent, scratch);
    if (plan->finish)
      finish(pointers.data(), 0, plan->finish->extent, scratch);
  });
  llvm::outs() << llvm::formatv("{0,-20} {1,10:f1} us {2,7:f1} GB/s\n", name, seconds * 1e6, bytes / seconds * 1e-9);
  llvm::for_each(pointers, std::free);
  dlclose(library);
  return success();
}

int main(int argc, char **argv) {
  if (argc < 2) {
    llvm::errs() << "usage: kernel-bench FILE.mlir [v3|v4]\n";
    return 2;
  }
  CpuLevel level = argc > 2 && StringRef(argv[2]) == "v3" ? CpuLevel::V3 : CpuLevel::V4;
  DialectRegistry registry;
  registry.insert<NDDialect>();
  registerObjectEmission(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  OwningOpRef<ModuleOp> module = parseSourceFile<ModuleOp>(argv[1], &context);
  PassManager manager(&context);
  manager.addPass(createDecompose());
  manager.addPass(createCanonicalizerPass());
  manager.addPass(createCSEPass());
  manager.addNestedPass<func::FuncOp>(createNDFormKernels());
  if (!module || failed(manager.run(*module)))
    return 1;
  bool works = true;
  for (auto function : module->getOps<func::FuncOp>())
    for (auto kernel : function.getOps<KernelOp>())
      works &= succeeded(benchmark(kernel, function.getName(), level));
  return works ? 0 : 1;
}
