//===- IndexGradients.cpp - Index operations: gradient rules ---===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "nd/Dialect/ND/IR/ND.h"

using namespace mlir;
using namespace nd;

FailureOr<SmallVector<Value>> TakeOp::buildGradient(OpBuilder &builder, ArrayRef<Value> resultGrads, ArrayRef<bool> wanted) {
  return emitOpError("has no gradient rule");
}

FailureOr<SmallVector<Value>> ScatterAddOp::buildGradient(OpBuilder &builder, ArrayRef<Value> resultGrads, ArrayRef<bool> wanted) {
  return emitOpError("has no gradient rule");
}

FailureOr<SmallVector<Value>> TakeAlongOp::buildGradient(OpBuilder &builder, ArrayRef<Value> resultGrads, ArrayRef<bool> wanted) {
  return emitOpError("has no gradient rule");
}

FailureOr<SmallVector<Value>> ScatterAddAlongOp::buildGradient(OpBuilder &builder, ArrayRef<Value> resultGrads, ArrayRef<bool> wanted) {
  return emitOpError("has no gradient rule");
}
