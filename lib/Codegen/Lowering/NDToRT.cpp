//===- NDToRT.cpp - From tensors to buffers --------------------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "ProgramBuilder.h"
#include "nd/Codegen/Lowering/Passes.h"

using namespace mlir;
using namespace nd;

namespace nd {
#define GEN_PASS_DEF_NDTORT
#include "nd/Codegen/Lowering/Passes.h.inc"
} // namespace nd

namespace {

struct NDToRT : nd::impl::NDToRTBase<NDToRT> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    SmallVector<func::FuncOp> functions(module.getOps<func::FuncOp>());
    if (functions.size() != 1) {
      module.emitError("a program is made of one function, but the module has ") << functions.size();
      return signalPassFailure();
    }
    func::FuncOp function = functions.front();
    if (!llvm::hasSingleElement(function.getBody())) {
      function.emitError("a program is a straight line: the function must have one block");
      return signalPassFailure();
    }
    KernelTable kernels{OpBuilder(function)};
    if (failed(ProgramBuilder(function, kernels).build()))
      return signalPassFailure();
    function.erase();
  }
};

} // namespace
