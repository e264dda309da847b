//===- ReductionFolds.cpp - Reductions: folders and patterns --------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "mlir/IR/PatternMatch.h"
#include "nd/Dialect/ND/IR/ND.h"

using namespace mlir;
using namespace nd;

void DotGeneralOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {}
OpFoldResult ReduceOp::fold(FoldAdaptor adaptor) { return {}; }
void ReduceOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {}
