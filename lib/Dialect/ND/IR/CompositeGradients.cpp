//===- CompositeGradients.cpp - Composites: gradient rules ----------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Norms and softmax have gradients of primitive operations on the saved statistics, in f32: the formation of kernels
// makes one row kernel of them. Attention and cross-entropy have gradient operations of their own.
//
//===----------------------------------------------------------------------===//

#include "Arithmetic.h"
#include "nd/Dialect/ND/IR/GradientType.h"

using namespace mlir;
using namespace nd;

using Gradients = FailureOr<SmallVector<Value>>;

namespace {

/// Statistics are saved for the backward only; a loss that reads them has no rule.
LogicalResult refuseStatisticGrads(Operation *op, ArrayRef<Value> resultGrads) {
  for (auto [index, grad] : llvm::enumerate(resultGrads.drop_front()))
    if (grad)
      return op->emitOpError() << "has no gradient through its result " << index + 1
                               << ", a statistic saved for the backward; compute it with separate operations instead";
  return success();
}

/// The common part of norms over the last dimension, y = xhat * weight (+ bias) with xhat = (x - mean) * rstd, all in
/// f32.
struct NormGradient {
  Arithmetic emit;
  Value grad; ///< of y
  Value xhat;
  Value rstd; ///< as wide as xhat

  ArrayRef<int64_t> shape() { return tensorTypeOf(xhat).getShape(); }
  int64_t last() { return tensorTypeOf(xhat).getRank() - 1; }

  /// The mean over each row, as wide as a row.
  Value rowMean(Value value) {
    Value sum = reduceSum(emit.builder, emit.loc, value, {last()});
    Value mean = emit.div(sum, emit.constant(sum, static_cast<double>(shape().back())));
    return broadcastOver(emit.builder, emit.loc, mean, shape(), {last()});
  }

  /// `isCentered`: the mean was subtracted, and depends on x too.
  Value ofInput(Value weight, bool isCentered, Type elementType) {
    Value scaled = grad;
    if (weight) {
      Value wide = convertFloat(emit.builder, emit.loc, weight, emit.builder.getF32Type());
      scaled = emit.mul(grad, broadcastTrailing(emit.builder, emit.loc, wide, shape()));
    }
    Value projected = emit.mul(xhat, rowMean(emit.mul(scaled, xhat)));
    Value difference = isCentered ? emit.sub(scaled, rowMean(scaled)) : scaled;
    Value result = emit.mul(rstd, emit.sub(difference, projected));
    return convertFloat(emit.builder, emit.loc, result, elementType);
  }

  Value sumOfRows(Value value, Type elementType) {
    Value sum = reduceSum(emit.builder, emit.loc, value, sequence(last()));
    return convertFloat(emit.builder, emit.loc, sum, elementType);
  }
  Value ofWeight(Type elementType) { return sumOfRows(emit.mul(grad, xhat), elementType); }
  Value ofBias(Type elementType) { return sumOfRows(grad, elementType); }
};

NormGradient prepareNorm(OpBuilder &builder, Location loc, Value input, Value mean, Value rstd, Value grad) {
  Arithmetic emit{builder, loc};
  RankedTensorType type = tensorTypeOf(input);
  auto widen = [&](Value value) { return convertFloat(builder, loc, value, builder.getF32Type()); };
  auto spread = [&](Value statistic) {
    return broadcastOver(builder, loc, statistic, type.getShape(), {type.getRank() - 1});
  };
  Value centered = widen(input), wideRstd = spread(rstd);
  if (mean)
    centered = emit.sub(centered, spread(mean));
  return {emit, widen(grad), emit.mul(centered, wideRstd), wideRstd};
}

} // namespace

Gradients SoftmaxOp::buildGradient(OpBuilder &builder, ArrayRef<Value> resultGrads, ArrayRef<bool> wanted) {
  Arithmetic emit{builder, getLoc()};
  Type elementType = getType().getElementType(), f32 = builder.getF32Type();
  int64_t dim = getDim();
  Value result = convertFloat(builder, getLoc(), getResult(), f32);
  Value grad = convertFloat(builder, getLoc(), resultGrads.front(), f32);
  Value sum = reduceSum(builder, getLoc(), emit.mul(grad, result), {dim});
  Value centered = emit.sub(grad, broadcastOver(builder, getLoc(), sum, getType().getShape(), {dim}));
  return SmallVector<Value>{convertFloat(builder, getLoc(), emit.mul(result, centered), elementType)};
}

Gradients LayerNormOp::buildGradient(OpBuilder &builder, ArrayRef<Value> resultGrads, ArrayRef<bool> wanted) {
  if (failed(refuseStatisticGrads(*this, resultGrads)))
    return failure();
  NormGradient norm = prepareNorm(builder, getLoc(), getInput(), getMean(), getRstd(), resultGrads.front());
  SmallVector<Value> result((*this)->getNumOperands());
  if (wanted[0])
    result[0] = norm.ofInput(getWeight(), /*isCentered=*/true, getInput().getType().getElementType());
  if (wanted[1])
    result[1] = norm.ofWeight(gradientElementType(getWeight()));
  if (getBias() && wanted[2])
    result[2] = norm.ofBias(gradientElementType(getBias()));
  return result;
}

Gradients RmsNormOp::buildGradient(OpBuilder &builder, ArrayRef<Value> resultGrads, ArrayRef<bool> wanted) {
  if (failed(refuseStatisticGrads(*this, resultGrads)))
    return failure();
  NormGradient norm = prepareNorm(builder, getLoc(), getInput(), Value(), getRstd(), resultGrads.front());
  SmallVector<Value> result((*this)->getNumOperands());
  if (wanted[0])
    result[0] = norm.ofInput(getWeight(), /*isCentered=*/false, getInput().getType().getElementType());
  if (getWeight() && wanted[1])
    result[1] = norm.ofWeight(gradientElementType(getWeight()));
  return result;
}

/// Rotating back is rotating by the negative angle. The tables' gradients sum over heads what each pair (a, b)
/// contributes.
Gradients RopeOp::buildGradient(OpBuilder &builder, ArrayRef<Value> resultGrads, ArrayRef<bool> wanted) {
  Arithmetic emit{builder, getLoc()};
  Value grad = resultGrads.front();
  SmallVector<Value> result(3);
  if (wanted[0])
    result[0] = RopeOp::create(builder, getLoc(), grad, getCos(), emit.neg(getSin()), getInterleaved());
  if (!wanted[1] && !wanted[2])
    return result;
  int64_t half = getCos().getType().getShape().back();
  auto member = [&](Value value, int64_t which) -> Value {
    RankedTensorType type = tensorTypeOf(value);
    SmallVector<int64_t> shape(type.getShape()), starts(4, 0), strides(4, 1);
    shape.back() = half;
    starts.back() = getInterleaved() ? which : which * half;
    strides.back() = getInterleaved() ? 2 : 1;
    return SliceOp::create(builder, getLoc(), withShape(type, shape), value, starts, strides);
  };
  auto wide = [&](Value value) { return convertFloat(builder, getLoc(), value, builder.getF32Type()); };
  Value a = wide(member(getInput(), 0)), b = wide(member(getInput(), 1)), gradA = wide(member(grad, 0)),
        gradB = wide(member(grad, 1));
  auto ofTable = [&](Value terms) {
    Value sum = reduceSum(builder, getLoc(), terms, {1});
    return convertFloat(builder, getLoc(), sum, getCos().getType().getElementType());
  };
  if (wanted[1])
    result[1] = ofTable(emit.add(emit.mul(gradA, a), emit.mul(gradB, b)));
  if (wanted[2])
    result[2] = ofTable(emit.sub(emit.mul(gradB, a), emit.mul(gradA, b)));
  return result;
}

Gradients AttentionOp::buildGradient(OpBuilder &builder, ArrayRef<Value> resultGrads, ArrayRef<bool> wanted) {
  if (failed(refuseStatisticGrads(*this, resultGrads)))
    return failure();
  if (getMask() && wanted.back())
    return emitOpError("has no gradient through its mask; its definition has (nd-decompose)");
  if (getCarryResult())
    return emitOpError("has no gradient when it merges a carry: gradients are built before a ring is expanded");
  auto inF32 = [&](Value value) { return cast<RankedTensorType>(value.getType()).clone(builder.getF32Type()); };
  auto grads = AttentionGradOp::create(
      builder, getLoc(), getQuery().getType(), inF32(getKey()), inF32(getValue()), getQuery(), getKey(), getValue(),
      getResult(), getLse(), resultGrads.front(), getPositions(), getDocuments(), getKeyPadding(), getMask(),
      getScaleAttr(), getCausalAttr(), getWindowAttr(), getSoftcapAttr(), getOrderAttr(), getValidAttr(),
      getKvMapAttr(), getCpModeAttr(), getSeqAxesAttr(), getHeadAxesAttr(), getKeyShardsAttr(), getRingStepAttr());
  SmallVector<Value> result((*this)->getNumOperands());
  for (auto [index, operand] : llvm::enumerate(SmallVector<Value>{getQuery(), getKey(), getValue()})) {
    Value grad = grads->getResult(index);
    bool narrow = grad.getType() != operand.getType();
    result[index] = narrow ? arith::TruncFOp::create(builder, getLoc(), operand.getType(), grad) : grad;
  }
  return result;
}

Gradients SoftmaxCrossEntropyOp::buildGradient(OpBuilder &builder, ArrayRef<Value> resultGrads, ArrayRef<bool> wanted) {
  if (failed(refuseStatisticGrads(*this, resultGrads)))
    return failure();
  Value grad = SoftmaxCrossEntropyGradOp::create(builder, getLoc(), getLogits().getType(), getLogits(), getLabels(),
                                                 getLse(), resultGrads.front(), getIgnoreIndexAttr());
  return SmallVector<Value>{grad, Value()};
}
