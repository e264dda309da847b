//===- CompositeDecompositions.cpp - Composite operations: definitions of composites ---===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "nd/Dialect/ND/IR/ND.h"

using namespace mlir;
using namespace nd;

FailureOr<SmallVector<Value>> SoftmaxOp::decompose(OpBuilder &builder) { return emitOpError("has no decomposition"); }

FailureOr<SmallVector<Value>> LayerNormOp::decompose(OpBuilder &builder) { return emitOpError("has no decomposition"); }

FailureOr<SmallVector<Value>> RmsNormOp::decompose(OpBuilder &builder) { return emitOpError("has no decomposition"); }

FailureOr<SmallVector<Value>> RopeOp::decompose(OpBuilder &builder) { return emitOpError("has no decomposition"); }

FailureOr<SmallVector<Value>> AttentionOp::decompose(OpBuilder &builder) { return emitOpError("has no decomposition"); }

FailureOr<SmallVector<Value>> AttentionGradOp::decompose(OpBuilder &builder) { return emitOpError("has no decomposition"); }

FailureOr<SmallVector<Value>> SoftmaxCrossEntropyOp::decompose(OpBuilder &builder) { return emitOpError("has no decomposition"); }

FailureOr<SmallVector<Value>> SoftmaxCrossEntropyGradOp::decompose(OpBuilder &builder) { return emitOpError("has no decomposition"); }
