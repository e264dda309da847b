//===- OptimizerDecompositions.cpp - Definitions of parameter updates -----===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// PyTorch's order of operations. The old values are selected, not multiplied by a flag: a step that is not applied
// leaves them alone even where the gradient is NaN.
//
//===----------------------------------------------------------------------===//

#include "Emitter.h"

using namespace mlir;
using namespace nd;

using Values = FailureOr<SmallVector<Value>>;

namespace {

/// The new value where the step is applied, in the type of the old one.
Value selectNew(Emitter &emit, Value apply, Value updated, Value old) {
  Value rounded = emit.round(updated, tensorTypeOf(old));
  return emit.select(emit.trailing(apply, old), rounded, old);
}

} // namespace

Values AdamWOp::decompose(OpBuilder &builder) {
  Emitter emit(builder, getLoc());
  double beta1 = getBeta1().convertToDouble(), beta2 = getBeta2().convertToDouble();
  double decay = getWeightDecay().convertToDouble();
  Value param = emit.f32(getParam()), expAvg = emit.f32(getExpAvg()), expAvgSq = emit.f32(getExpAvgSq());
  Value grad = emit.mul(emit.f32(getGrad()), emit.trailing(getGradScale(), getGrad()));

  // lerp: m + (1 - beta1) (g - m).
  Value newExpAvg = emit.add(expAvg, emit.mul(emit.sub(grad, expAvg), 1 - beta1));
  Value newExpAvgSq = emit.add(emit.mul(expAvgSq, beta2), emit.mul(emit.mul(grad, 1 - beta2), grad));
  Value denominator = emit.div(emit.sqrt(newExpAvgSq), emit.trailing(getSqrtBias2(), param));
  denominator = emit.add(denominator, getEps().convertToDouble());
  Value newParam = param;
  if (decay > 0) {
    Value keep = emit.sub(emit.number(1, getLr()), emit.mul(getLr(), decay));
    newParam = emit.mul(param, emit.trailing(keep, param));
  }
  Value stepSize = emit.div(getLr(), getBias1());
  Value step = emit.div(emit.mul(newExpAvg, emit.trailing(stepSize, param)), denominator);
  newParam = emit.sub(newParam, step);
  return SmallVector<Value>{selectNew(emit, getApply(), newParam, getParam()),
                            selectNew(emit, getApply(), newExpAvg, getExpAvg()),
                            selectNew(emit, getApply(), newExpAvgSq, getExpAvgSq())};
}

Values SgdOp::decompose(OpBuilder &builder) {
  Emitter emit(builder, getLoc());
  double decay = getWeightDecay().convertToDouble();
  Value param = emit.f32(getParam());
  Value direction = emit.mul(emit.f32(getGrad()), emit.trailing(getGradScale(), getGrad()));
  if (decay > 0)
    direction = emit.add(direction, emit.mul(param, decay));
  Value buffer = getMomentumBuffer();
  if (buffer)
    direction = emit.add(emit.mul(emit.f32(buffer), getMomentum().convertToDouble()), direction);
  Value newParam = emit.sub(param, emit.mul(direction, emit.trailing(getLr(), param)));
  SmallVector<Value> results = {selectNew(emit, getApply(), newParam, getParam())};
  if (buffer)
    results.push_back(selectNew(emit, getApply(), direction, buffer));
  return results;
}
