//===- Decompose.cpp - Replace composites by their definitions ------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "nd/Dialect/ND/IR/ND.h"
#include "nd/Dialect/ND/Transforms/Passes.h"

namespace nd {
#define GEN_PASS_DEF_DECOMPOSE
#include "nd/Dialect/ND/Transforms/Passes.h.inc"
} // namespace nd

using namespace mlir;
using namespace nd;

namespace {

bool isEncoded(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && tensor.getEncoding();
}

LogicalResult replaceByDefinition(DecomposableOpInterface op) {
  if (llvm::any_of(op->getOperandTypes(), isEncoded) || llvm::any_of(op->getResultTypes(), isEncoded))
    return op->emitOpError() << "cannot be decomposed on sharded tensors; partition the function first";
  OpBuilder builder(op);
  FailureOr<SmallVector<Value>> values = op.decompose(builder);
  if (failed(values))
    return failure();
  op->replaceAllUsesWith(*values);
  op->erase();
  return success();
}

struct DecomposePass : nd::impl::DecomposeBase<DecomposePass> {
  using DecomposeBase::DecomposeBase;

  void runOnOperation() override {
    SmallVector<DecomposableOpInterface> composites;
    getOperation()->walk([&](DecomposableOpInterface op) {
      if (all || !isa<AttentionOp, AttentionGradOp>(op))
        composites.push_back(op);
    });
    for (DecomposableOpInterface op : composites)
      if (failed(replaceByDefinition(op)))
        return signalPassFailure();
  }
};

} // namespace
