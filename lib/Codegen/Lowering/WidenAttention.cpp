//===- WidenAttention.cpp - Attention of f16 in f32 -----------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "nd/Codegen/Lowering/Passes.h"
#include "nd/Dialect/ND/IR/Builders.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace nd;

namespace nd {
#define GEN_PASS_DEF_NDWIDENATTENTION
#include "nd/Codegen/Lowering/Passes.h.inc"
} // namespace nd

namespace {

bool isHalf(Value value) { return getElementTypeOrSelf(value.getType()).isF16(); }

void widen(Operation *op) {
  OpBuilder builder(op);
  for (OpOperand &operand : op->getOpOperands())
    if (isHalf(operand.get()))
      operand.set(convertFloat(builder, op->getLoc(), operand.get(), builder.getF32Type()));
  builder.setInsertionPointAfter(op);
  for (Value result : op->getResults()) {
    if (!isHalf(result))
      continue;
    RankedTensorType type = tensorTypeOf(result);
    result.setType(type.clone(builder.getF32Type()));
    Value rounded = convertFloat(builder, op->getLoc(), result, type.getElementType());
    result.replaceAllUsesExcept(rounded, rounded.getDefiningOp());
  }
}

struct WidenAttention : nd::impl::NDWidenAttentionBase<WidenAttention> {
  void runOnOperation() override {
    getOperation().walk([](Operation *op) {
      if (isa<AttentionOp, AttentionGradOp>(op))
        widen(op);
    });
  }
};

} // namespace
