//===- ReductionGradients.cpp - Reduction operations: gradient rules ---===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "nd/Dialect/ND/IR/ND.h"

using namespace mlir;
using namespace nd;

FailureOr<SmallVector<Value>> DotGeneralOp::buildGradient(OpBuilder &builder, ArrayRef<Value> resultGrads, ArrayRef<bool> wanted) {
  return emitOpError("has no gradient rule");
}

FailureOr<SmallVector<Value>> ReduceOp::buildGradient(OpBuilder &builder, ArrayRef<Value> resultGrads, ArrayRef<bool> wanted) {
  return emitOpError("has no gradient rule");
}

FailureOr<SmallVector<Value>> TopKOp::buildGradient(OpBuilder &builder, ArrayRef<Value> resultGrads, ArrayRef<bool> wanted) {
  return emitOpError("has no gradient rule");
}

FailureOr<SmallVector<Value>> CumSumOp::buildGradient(OpBuilder &builder, ArrayRef<Value> resultGrads, ArrayRef<bool> wanted) {
  return emitOpError("has no gradient rule");
}
