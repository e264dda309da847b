//===- StructuralGradients.cpp - Structural operations: gradient rules ---===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "nd/Dialect/ND/IR/ND.h"

using namespace mlir;
using namespace nd;

FailureOr<SmallVector<Value>> BroadcastOp::buildGradient(OpBuilder &builder, ArrayRef<Value> resultGrads, ArrayRef<bool> wanted) {
  return emitOpError("has no gradient rule");
}

FailureOr<SmallVector<Value>> ReshapeOp::buildGradient(OpBuilder &builder, ArrayRef<Value> resultGrads, ArrayRef<bool> wanted) {
  return emitOpError("has no gradient rule");
}

FailureOr<SmallVector<Value>> TransposeOp::buildGradient(OpBuilder &builder, ArrayRef<Value> resultGrads, ArrayRef<bool> wanted) {
  return emitOpError("has no gradient rule");
}

FailureOr<SmallVector<Value>> SliceOp::buildGradient(OpBuilder &builder, ArrayRef<Value> resultGrads, ArrayRef<bool> wanted) {
  return emitOpError("has no gradient rule");
}

FailureOr<SmallVector<Value>> PadOp::buildGradient(OpBuilder &builder, ArrayRef<Value> resultGrads, ArrayRef<bool> wanted) {
  return emitOpError("has no gradient rule");
}

FailureOr<SmallVector<Value>> ConcatOp::buildGradient(OpBuilder &builder, ArrayRef<Value> resultGrads, ArrayRef<bool> wanted) {
  return emitOpError("has no gradient rule");
}
