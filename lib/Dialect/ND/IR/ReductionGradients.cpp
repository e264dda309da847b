//===- ReductionGradients.cpp - Contractions and reductions: gradients ----===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Arithmetic.h"
#include "nd/Dialect/ND/IR/GradientType.h"

using namespace mlir;
using namespace nd;

using Gradients = FailureOr<SmallVector<Value>>;

namespace {

/// One operand of the contraction that yields a gradient.
struct ContractionOperand {
  Value value;
  SmallVector<int64_t> batch, contract;
  /// The dimension of the wanted gradient that each dimension of `value` becomes; -1 where it is contracted.
  SmallVector<int64_t> target;

  /// Targets of the free dimensions, ascending in `value`.
  SmallVector<int64_t> freeTargets() const {
    SmallVector<int64_t> result;
    for (auto [dim, to] : llvm::enumerate(target))
      if (!llvm::is_contained(batch, static_cast<int64_t>(dim)) && to >= 0)
        result.push_back(to);
    return result;
  }
};

/// The contraction of `a` and `b`, batch dimensions paired in order, with the result's dimensions where their targets
/// say. Operands are exchanged when that saves a transpose.
Value contract(OpBuilder &builder, Location loc, const ContractionOperand &a, const ContractionOperand &b,
               Type elementType) {
  auto orderOf = [](const ContractionOperand &lhs, const ContractionOperand &rhs) {
    SmallVector<int64_t> order;
    for (int64_t dim : lhs.batch)
      order.push_back(lhs.target[dim]);
    llvm::append_range(order, lhs.freeTargets());
    llvm::append_range(order, rhs.freeTargets());
    return order;
  };
  SmallVector<int64_t> order = orderOf(a, b);
  bool exchange = !llvm::is_sorted(order) && llvm::is_sorted(orderOf(b, a));
  const ContractionOperand &lhs = exchange ? b : a, &rhs = exchange ? a : b;
  if (exchange)
    order = orderOf(b, a);
  Value product =
      dotGeneral(builder, loc, lhs.value, rhs.value, lhs.batch, rhs.batch, lhs.contract, rhs.contract, elementType);
  return transpose(builder, loc, product, invertPermutation(order));
}

} // namespace

Gradients DotGeneralOp::buildGradient(OpBuilder &builder, ArrayRef<Value> resultGrads, ArrayRef<bool> wanted) {
  Type elementType = getLhs().getType().getElementType();
  Value grad = convertFloat(builder, getLoc(), resultGrads.front(), elementType);
  SmallVector<int64_t> lhsFree = getLhsFree(), rhsFree = getRhsFree();
  int64_t numBatch = getLhsBatch().size(), numLhsFree = lhsFree.size(), numRhsFree = rhsFree.size();

  // The result is [batch, free of the left, free of the right]. For the gradient of one side, the other side's free
  // dimensions are contracted; the other side's contracted dimensions are this side's.
  auto gradientOf = [&](bool ofLhs) {
    ArrayRef<int64_t> batch = ofLhs ? getLhsBatch() : getRhsBatch(), otherBatch = ofLhs ? getRhsBatch() : getLhsBatch();
    ArrayRef<int64_t> free = ofLhs ? lhsFree : rhsFree, otherFree = ofLhs ? rhsFree : lhsFree;
    ArrayRef<int64_t> contracted = ofLhs ? getLhsContract() : getRhsContract();
    ArrayRef<int64_t> otherContracted = ofLhs ? getRhsContract() : getLhsContract();
    Value other = ofLhs ? getRhs() : getLhs();
    int64_t firstFree = numBatch + (ofLhs ? 0 : numLhsFree), firstOtherFree = numBatch + (ofLhs ? numLhsFree : 0);

    ContractionOperand result{grad, sequence(numBatch), sequence(otherFree.size(), firstOtherFree),
                              SmallVector<int64_t>(numBatch + numLhsFree + numRhsFree, -1)};
    for (auto [position, dim] : llvm::enumerate(batch))
      result.target[position] = dim;
    for (auto [position, dim] : llvm::enumerate(free))
      result.target[firstFree + position] = dim;

    ContractionOperand operand{other, llvm::to_vector(otherBatch), llvm::to_vector(otherFree),
                               SmallVector<int64_t>(tensorTypeOf(other).getRank(), -1)};
    for (auto [dim, otherDim] : llvm::zip_equal(batch, otherBatch))
      operand.target[otherDim] = dim;
    for (auto [dim, otherDim] : llvm::zip_equal(contracted, otherContracted))
      operand.target[otherDim] = dim;
    return contract(builder, getLoc(), result, operand, gradientElementType(ofLhs ? getLhs() : getRhs()));
  };
  return SmallVector<Value>{wanted[0] ? gradientOf(true) : Value(), wanted[1] ? gradientOf(false) : Value()};
}

Gradients ReduceOp::buildGradient(OpBuilder &builder, ArrayRef<Value> resultGrads, ArrayRef<bool> wanted) {
  Arithmetic emit{builder, getLoc()};
  ArrayRef<int64_t> shape = getInput().getType().getShape();
  auto spread = [&](Value value) { return broadcastOver(builder, getLoc(), value, shape, getDims()); };
  Value grad = resultGrads.front();
  if (getKind() == ReductionKind::sum)
    return SmallVector<Value>{spread(grad)};
  // All elements that equal the extremum share the gradient, as in torch.amax.
  Value ties = emit.compare(arith::CmpFPredicate::OEQ, getInput(), spread(getResult()));
  Value ones = emit.keepWhere(ties, emit.constant(getInput(), 1.0));
  Value share = emit.div(grad, reduceSum(builder, getLoc(), ones, getDims()));
  return SmallVector<Value>{emit.keepWhere(ties, spread(share))};
}

Gradients TopKOp::buildGradient(OpBuilder &builder, ArrayRef<Value> resultGrads, ArrayRef<bool> wanted) {
  RankedTensorType type = getInput().getType();
  return SmallVector<Value>{ScatterAddAlongOp::create(builder, getLoc(), withShape(type, type.getShape()), getIndices(),
                                                      resultGrads.front(), type.getRank() - 1)};
}

Gradients CumSumOp::buildGradient(OpBuilder &builder, ArrayRef<Value> resultGrads, ArrayRef<bool> wanted) {
  return SmallVector<Value>{
      CumSumOp::create(builder, getLoc(), resultGrads.front(), getDim(), getExclusive(), !getReverse())};
}
