//===- IndexGradients.cpp - Gathers and scatters: gradient rules ----------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Gathers and scatters are each other's transposes. Indices are integers and receive nothing.
//
//===----------------------------------------------------------------------===//

#include "Arithmetic.h"
#include "nd/Dialect/ND/IR/GradientType.h"

using namespace mlir;
using namespace nd;

using Gradients = FailureOr<SmallVector<Value>>;

Gradients TakeOp::buildGradient(OpBuilder &builder, ArrayRef<Value> resultGrads, ArrayRef<bool> wanted) {
  RankedTensorType type = getTable().getType();
  Value updates = convertFloat(builder, getLoc(), resultGrads.front(), gradientElementType(getTable()));
  Value grad = ScatterAddOp::create(builder, getLoc(), withShape(tensorTypeOf(updates), type.getShape()), getIndices(),
                                    updates, Value(), getPaddingIdxAttr(), ArrayAttr());
  return SmallVector<Value>{grad, Value()};
}

Gradients ScatterAddOp::buildGradient(OpBuilder &builder, ArrayRef<Value> resultGrads, ArrayRef<bool> wanted) {
  Arithmetic emit{builder, getLoc()};
  Value grad = resultGrads.front(), updatesGrad;
  if (wanted[1]) {
    RankedTensorType type = getUpdates().getType();
    updatesGrad = TakeOp::create(builder, getLoc(), withShape(type, type.getShape()), grad, getIndices(), IntegerAttr(),
                                 ArrayAttr());
    // Updates of the padding row are dropped, so nothing comes back from it.
    if (std::optional<uint64_t> padding = getPaddingIdx()) {
      Value isPadding =
          emit.make<arith::CmpIOp>(arith::CmpIPredicate::eq, getIndices(),
                                   intSplatLike(builder, getLoc(), getIndices(), static_cast<int64_t>(*padding)));
      int64_t rank = getIndices().getType().getRank();
      Value spread = broadcastTo(builder, getLoc(), isPadding, type.getShape(), sequence(rank));
      updatesGrad = emit.zeroWhere(spread, updatesGrad);
    }
  }
  SmallVector<Value> result = {Value(), updatesGrad};
  if (getInit())
    result.push_back(wanted[2] ? grad : Value());
  return result;
}

Gradients TakeAlongOp::buildGradient(OpBuilder &builder, ArrayRef<Value> resultGrads, ArrayRef<bool> wanted) {
  RankedTensorType type = getInput().getType();
  Value grad = ScatterAddAlongOp::create(builder, getLoc(), withShape(type, type.getShape()), getIndices(),
                                         resultGrads.front(), getDim());
  return SmallVector<Value>{grad, Value()};
}

Gradients ScatterAddAlongOp::buildGradient(OpBuilder &builder, ArrayRef<Value> resultGrads, ArrayRef<bool> wanted) {
  RankedTensorType type = getUpdates().getType();
  Value grad = TakeAlongOp::create(builder, getLoc(), withShape(type, type.getShape()), resultGrads.front(),
                                   getIndices(), getDim());
  return SmallVector<Value>{Value(), grad};
}
