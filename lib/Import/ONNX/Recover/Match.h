//===- Match.h - What the recovery of composites matches with ---*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_LIB_IMPORT_ONNX_RECOVER_MATCH_H
#define ND_LIB_IMPORT_ONNX_RECOVER_MATCH_H

#include "Analysis/Constants.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/PatternMatch.h"
#include "nd/Dialect/ND/IR/Builders.h"

namespace nd::onnx {

/// The operand behind reshapes that only add and remove dimensions of size 1.
mlir::Value lookThroughUnitReshapes(mlir::Value value);

/// A product (sum) in either order of operands: visits (lhs, rhs) then (rhs, lhs) until `visit` returns true.
template <typename Visit> bool eitherOrder(mlir::Operation *op, Visit visit) {
  return visit(op->getOperand(0), op->getOperand(1)) || visit(op->getOperand(1), op->getOperand(0));
}

/// `value` = base * factor with a constant factor (also base / divisor).
struct Scaled {
  mlir::Value base;
  double factor;
};
std::optional<Scaled> matchScaled(mlir::Value value);

void populateRmsNormPatterns(mlir::RewritePatternSet &patterns);
void populateRopePatterns(mlir::RewritePatternSet &patterns);
void populateAttentionPatterns(mlir::RewritePatternSet &patterns);
void populateMaskPatterns(mlir::RewritePatternSet &patterns);
void populateCrossEntropyPatterns(mlir::RewritePatternSet &patterns);

} // namespace nd::onnx

#endif // ND_LIB_IMPORT_ONNX_RECOVER_MATCH_H
