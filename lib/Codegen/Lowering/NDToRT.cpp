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

/// Programs hold tensors of static shapes whose elements are numbers of at most eight bytes, or booleans.
bool isHeld(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || !tensor.hasStaticShape())
    return false;
  Type element = tensor.getElementType();
  return element.isF64() || element.isF32() || element.isF16() || element.isBF16() ||
         llvm::any_of(ArrayRef<unsigned>{1, 8, 16, 32, 64},
                      [&](unsigned width) { return element.isSignlessInteger(width); });
}

LogicalResult checkTypes(func::FuncOp function) {
  auto check = [](Location loc, TypeRange types) -> LogicalResult {
    for (Type type : types)
      if (!isHeld(type))
        return emitError(loc) << "programs do not hold values of type " << type
                              << "; expected a tensor of static shape of f16, bf16, f32, f64 or i1 to i64";
    return success();
  };
  if (failed(check(function.getLoc(), function.getArgumentTypes())))
    return failure();
  WalkResult result = function.walk([&](Operation *op) {
    return WalkResult(isa<func::FuncOp>(op) ? success() : check(op->getLoc(), op->getResultTypes()));
  });
  return failure(result.wasInterrupted());
}

struct NDToRT : nd::impl::NDToRTBase<NDToRT> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    SmallVector<func::FuncOp> functions(module.getOps<func::FuncOp>());
    if (functions.size() != 1) {
      emitError(module.getLoc(), "a program is made of one function, but the module has ") << functions.size();
      return signalPassFailure();
    }
    func::FuncOp function = functions.front();
    if (failed(checkTypes(function)))
      return signalPassFailure();
    if (!llvm::hasSingleElement(function.getBody())) {
      function.emitError("a program is a straight line: the function must have one block");
      return signalPassFailure();
    }
    // What a loop captures, its body reads where it is.
    function.walk([](RepeatOp loop) {
      for (auto [argument, operand] : llvm::zip_equal(loop.getCapturedArguments(), loop.getCaptured()))
        argument.replaceAllUsesWith(operand);
    });
    KernelTable kernels{OpBuilder(function)};
    if (failed(ProgramBuilder(function, kernels).build()))
      return signalPassFailure();
    function.erase();
  }
};

} // namespace
