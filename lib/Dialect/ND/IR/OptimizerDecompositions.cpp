//===- OptimizerDecompositions.cpp - Optimizer operations: definitions of composites ---===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "nd/Dialect/ND/IR/ND.h"

using namespace mlir;
using namespace nd;

FailureOr<SmallVector<Value>> AdamWOp::decompose(OpBuilder &builder) { return emitOpError("has no decomposition"); }

FailureOr<SmallVector<Value>> SgdOp::decompose(OpBuilder &builder) { return emitOpError("has no decomposition"); }
