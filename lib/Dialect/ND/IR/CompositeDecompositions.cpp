//===- CompositeDecompositions.cpp - Definitions of composites ------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Numerical definitions, in f32 inside whatever the operands are, with PyTorch's order of operations where rounding
// depends on it. Attention has its own file.
//
//===----------------------------------------------------------------------===//

#include "Emitter.h"
#include <limits>

using namespace mlir;
using namespace nd;

using Values = FailureOr<SmallVector<Value>>;

Values SoftmaxOp::decompose(OpBuilder &builder) {
  Emitter emit(builder, getLoc());
  int64_t dim = getDim();
  Value x = emit.f32(getInput());
  Value exps = emit.exp(emit.sub(x, emit.over(emit.max(x, dim), x, dim)));
  Value result = emit.div(exps, emit.over(emit.sum(exps, dim), x, dim));
  return SmallVector<Value>{emit.round(result, getType())};
}

Values LayerNormOp::decompose(OpBuilder &builder) {
  Emitter emit(builder, getLoc());
  int64_t last = getInput().getType().getRank() - 1;
  auto width = static_cast<double>(getWidth());
  Value x = emit.f32(getInput());
  Value mean = emit.div(emit.sum(x, last), width);
  Value centered = emit.sub(x, emit.over(mean, x, last));
  Value variance = emit.div(emit.sum(emit.mul(centered, centered), last), width);
  Value deviation = emit.sqrt(emit.add(variance, getEps().convertToDouble()));
  Value rstd = emit.div(emit.number(1, deviation), deviation);
  Value result = emit.mul(centered, emit.over(rstd, x, last));
  result = emit.mul(result, emit.trailing(emit.f32(getWeight()), x));
  if (getBias())
    result = emit.add(result, emit.trailing(emit.f32(getBias()), x));
  return SmallVector<Value>{emit.round(result, getResult().getType()), mean, rstd};
}

Values RmsNormOp::decompose(OpBuilder &builder) {
  Emitter emit(builder, getLoc());
  RankedTensorType type = getInput().getType();
  int64_t last = type.getRank() - 1;
  Value x = emit.f32(getInput());
  Value meanSquare = emit.div(emit.sum(emit.mul(x, x), last), static_cast<double>(type.getShape().back()));
  Value root = emit.sqrt(emit.add(meanSquare, getEps().convertToDouble()));
  Value rstd = emit.div(emit.number(1, root), root);
  Value result = emit.mul(x, emit.over(rstd, x, last));
  if (getWeight())
    result = emit.mul(result, emit.trailing(emit.f32(getWeight()), x));
  return SmallVector<Value>{emit.round(result, getResult().getType()), rstd};
}

Values RopeOp::decompose(OpBuilder &builder) {
  Emitter emit(builder, getLoc());
  RankedTensorType type = getInput().getType();
  int64_t half = getCos().getType().getDimSize(2), width = type.getDimSize(3);
  Value x = emit.f32(getInput());
  SmallVector<int64_t> shape(type.getShape());
  shape[3] = half;
  auto perHead = [&](Value table) { return emit.broadcast(emit.f32(table), shape, {0, 2, 3}); };
  Value cos = perHead(getCos()), sin = perHead(getSin());

  auto every = [&](int64_t start, int64_t stride) -> Value {
    auto sliced = RankedTensorType::get(shape, builder.getF32Type());
    return SliceOp::create(builder, getLoc(), sliced, x, ArrayRef<int64_t>{0, 0, 0, start},
                           ArrayRef<int64_t>{1, 1, 1, stride});
  };
  bool interleaved = getInterleaved();
  Value a = interleaved ? every(0, 2) : every(0, 1);
  Value b = interleaved ? every(1, 2) : every(half, 1);
  Value rotatedA = emit.sub(emit.mul(a, cos), emit.mul(b, sin));
  Value rotatedB = emit.add(emit.mul(b, cos), emit.mul(a, sin));

  SmallVector<Value> parts = {rotatedA, rotatedB};
  if (interleaved) {
    SmallVector<int64_t> single(shape), rotated(shape);
    single.push_back(1);
    rotated[3] = 2 * half;
    Value pairs = concat(builder, getLoc(), {emit.reshape(rotatedA, single), emit.reshape(rotatedB, single)}, 4);
    parts = {emit.reshape(pairs, rotated)};
  }
  if (2 * half < width)
    parts.push_back(nd::slice(builder, getLoc(), x, 3, 2 * half, width - 2 * half));
  return SmallVector<Value>{emit.round(concat(builder, getLoc(), parts, 3), getType())};
}

namespace {

/// Labels beside each class, and the rows that do not count.
struct Labels {
  Value ignored; ///< [...], true where the label is the ignore index
  Value onehot;  ///< [..., V], true at the label

  Labels(Emitter &emit, Value labels, int64_t ignoreIndex, ArrayRef<int64_t> shape) {
    int64_t rank = tensorTypeOf(labels).getRank();
    Value ignore = intSplatLike(emit.builder, emit.loc, labels, ignoreIndex);
    ignored = emit.compare(arith::CmpIPredicate::eq, labels, ignore);
    // Classes are compared in 32 bits, as wide as the logits, so that both move through vectors of equal length.
    Type narrow = emit.builder.getI32Type();
    if (tensorTypeOf(labels).getElementTypeBitWidth() > 32 && shape.back() <= std::numeric_limits<int32_t>::max())
      labels = arith::TruncIOp::create(emit.builder, emit.loc,
                                       RankedTensorType::get(tensorTypeOf(labels).getShape(), narrow), labels);
    Type type = tensorTypeOf(labels).getElementType();
    Value classes = iota(emit.builder, emit.loc, type, shape, rank);
    onehot = emit.compare(arith::CmpIPredicate::eq, classes, emit.broadcast(labels, shape, sequence(rank)));
  }
};

} // namespace

Values SoftmaxCrossEntropyOp::decompose(OpBuilder &builder) {
  Emitter emit(builder, getLoc());
  Value x = emit.f32(getLogits());
  Labels labels(emit, getLabels(), getIgnoreIndex(), getLogits().getType().getShape());
  int64_t last = getLabels().getType().getRank();
  Value max = emit.max(x, last);
  Value logSum = emit.log(emit.sum(emit.exp(emit.sub(x, emit.over(max, x, last))), last));
  Value picked = emit.sum(emit.select(labels.onehot, x, emit.number(0, x)), last);
  // log(sum) - (x[label] - max) loses less than lse - x[label] where logits are large.
  Value losses = emit.sub(logSum, emit.sub(picked, max));
  losses = emit.select(labels.ignored, emit.number(0, losses), losses);
  return SmallVector<Value>{losses, emit.add(max, logSum)};
}

Values SoftmaxCrossEntropyGradOp::decompose(OpBuilder &builder) {
  Emitter emit(builder, getLoc());
  Value x = emit.f32(getLogits());
  Labels labels(emit, getLabels(), getIgnoreIndex(), getLogits().getType().getShape());
  Value weights = emit.select(labels.ignored, emit.number(0, getLossesGrad()), getLossesGrad());
  int64_t last = getLabels().getType().getRank();
  Value probabilities = emit.exp(emit.sub(x, emit.over(getLse(), x, last)));
  Value difference = emit.select(labels.onehot, emit.add(probabilities, -1.0), probabilities);
  Value result = emit.mul(difference, emit.over(weights, x, last));
  return SmallVector<Value>{emit.round(result, getType())};
}
