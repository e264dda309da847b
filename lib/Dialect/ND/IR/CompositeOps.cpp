//===- CompositeOps.cpp - Composite operations: verifiers and folders ---===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "nd/Dialect/ND/IR/ND.h"

using namespace mlir;
using namespace nd;

#define GET_OP_CLASSES
#include "nd/Dialect/ND/IR/NDCompositeOps.cpp.inc"

LogicalResult SoftmaxOp::verify() { return success(); }

LogicalResult LayerNormOp::verify() { return success(); }

LogicalResult RmsNormOp::verify() { return success(); }

LogicalResult RopeOp::verify() { return success(); }

LogicalResult AttentionOp::verify() { return success(); }

LogicalResult AttentionGradOp::verify() { return success(); }

LogicalResult SoftmaxCrossEntropyOp::verify() { return success(); }

LogicalResult SoftmaxCrossEntropyGradOp::verify() { return success(); }

LogicalResult DropoutOp::verify() { return success(); }

OpFoldResult DropoutOp::fold(FoldAdaptor adaptor) { return {}; }
