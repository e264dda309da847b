//===- StructuralOps.cpp - Structural operations: verifiers and folders ---===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "mlir/IR/PatternMatch.h"
#include "nd/Dialect/ND/IR/ND.h"

using namespace mlir;
using namespace nd;

#define GET_OP_CLASSES
#include "nd/Dialect/ND/IR/NDStructuralOps.cpp.inc"

LogicalResult BroadcastOp::verify() { return success(); }

OpFoldResult BroadcastOp::fold(FoldAdaptor adaptor) { return {}; }

void BroadcastOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {}

LogicalResult ReshapeOp::verify() { return success(); }

OpFoldResult ReshapeOp::fold(FoldAdaptor adaptor) { return {}; }

void ReshapeOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {}

LogicalResult TransposeOp::verify() { return success(); }

OpFoldResult TransposeOp::fold(FoldAdaptor adaptor) { return {}; }

void TransposeOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {}

LogicalResult SliceOp::verify() { return success(); }

OpFoldResult SliceOp::fold(FoldAdaptor adaptor) { return {}; }

void SliceOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {}

LogicalResult PadOp::verify() { return success(); }

OpFoldResult PadOp::fold(FoldAdaptor adaptor) { return {}; }

LogicalResult ConcatOp::verify() { return success(); }

OpFoldResult ConcatOp::fold(FoldAdaptor adaptor) { return {}; }

LogicalResult IotaOp::verify() { return success(); }
