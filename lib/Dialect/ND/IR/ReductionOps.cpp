//===- ReductionOps.cpp - Reduction operations: verifiers and folders ---===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "mlir/IR/PatternMatch.h"
#include "nd/Dialect/ND/IR/ND.h"

using namespace mlir;
using namespace nd;

#define GET_OP_CLASSES
#include "nd/Dialect/ND/IR/NDReductionOps.cpp.inc"

LogicalResult DotGeneralOp::verify() { return success(); }

void DotGeneralOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {}

SmallVector<int64_t> DotGeneralOp::getLhsFree() { return {}; }
SmallVector<int64_t> DotGeneralOp::getRhsFree() { return {}; }

LogicalResult ReduceOp::verify() { return success(); }

OpFoldResult ReduceOp::fold(FoldAdaptor adaptor) { return {}; }

void ReduceOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {}

LogicalResult ArgMaxOp::verify() { return success(); }

LogicalResult TopKOp::verify() { return success(); }

LogicalResult CumSumOp::verify() { return success(); }
