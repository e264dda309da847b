//===- CompositeGradients.cpp - Composite operations: gradient rules ---===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "nd/Dialect/ND/IR/ND.h"

using namespace mlir;
using namespace nd;

FailureOr<SmallVector<Value>> SoftmaxOp::buildGradient(OpBuilder &builder, ArrayRef<Value> resultGrads, ArrayRef<bool> wanted) {
  return emitOpError("has no gradient rule");
}

FailureOr<SmallVector<Value>> LayerNormOp::buildGradient(OpBuilder &builder, ArrayRef<Value> resultGrads, ArrayRef<bool> wanted) {
  return emitOpError("has no gradient rule");
}

FailureOr<SmallVector<Value>> RmsNormOp::buildGradient(OpBuilder &builder, ArrayRef<Value> resultGrads, ArrayRef<bool> wanted) {
  return emitOpError("has no gradient rule");
}

FailureOr<SmallVector<Value>> RopeOp::buildGradient(OpBuilder &builder, ArrayRef<Value> resultGrads, ArrayRef<bool> wanted) {
  return emitOpError("has no gradient rule");
}

FailureOr<SmallVector<Value>> AttentionOp::buildGradient(OpBuilder &builder, ArrayRef<Value> resultGrads, ArrayRef<bool> wanted) {
  return emitOpError("has no gradient rule");
}

FailureOr<SmallVector<Value>> SoftmaxCrossEntropyOp::buildGradient(OpBuilder &builder, ArrayRef<Value> resultGrads, ArrayRef<bool> wanted) {
  return emitOpError("has no gradient rule");
}
