//===- StructuralFolds.cpp - Data movement: folders and patterns ----------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "mlir/IR/PatternMatch.h"
#include "nd/Dialect/ND/IR/ND.h"

using namespace mlir;
using namespace nd;

OpFoldResult BroadcastOp::fold(FoldAdaptor adaptor) { return {}; }
void BroadcastOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {}
OpFoldResult ReshapeOp::fold(FoldAdaptor adaptor) { return {}; }
void ReshapeOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {}
OpFoldResult TransposeOp::fold(FoldAdaptor adaptor) { return {}; }
void TransposeOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {}
OpFoldResult SliceOp::fold(FoldAdaptor adaptor) { return {}; }
void SliceOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {}
OpFoldResult PadOp::fold(FoldAdaptor adaptor) { return {}; }
OpFoldResult ConcatOp::fold(FoldAdaptor adaptor) { return {}; }
