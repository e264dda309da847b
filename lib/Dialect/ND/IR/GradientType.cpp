//===- GradientType.cpp - Element types of gradients ----------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "nd/Dialect/ND/IR/GradientType.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "nd/Dialect/ND/IR/Builders.h"

using namespace mlir;
using namespace nd;

Type nd::gradientElementType(Value value) {
  Type own = tensorTypeOf(value).getElementType();
  Operation *op = value.getDefiningOp();
  if (auto round = dyn_cast_or_null<arith::TruncFOp>(op))
    return isa<BlockArgument>(round.getIn()) ? tensorTypeOf(round.getIn()).getElementType() : own;
  if (!isa_and_nonnull<ReshapeOp, TransposeOp, SliceOp, BroadcastOp, ConcatOp>(op))
    return own;
  Type type = gradientElementType(op->getOperand(0));
  bool isOfAll = llvm::all_of(op->getOperands(), [&](Value part) { return gradientElementType(part) == type; });
  return isOfAll ? type : own;
}
