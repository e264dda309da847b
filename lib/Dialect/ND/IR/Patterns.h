//===- Patterns.h - What canonicalization patterns share --------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_LIB_DIALECT_ND_IR_PATTERNS_H
#define ND_LIB_DIALECT_ND_IR_PATTERNS_H

#include "mlir/IR/PatternMatch.h"
#include "nd/Dialect/ND/IR/Builders.h"
#include "nd/Dialect/ND/IR/ND.h"

namespace nd {

/// Whether no operand or result type carries an encoding.
inline bool isPlain(mlir::Operation *op) {
  auto plain = [](mlir::Type type) {
    auto tensor = llvm::dyn_cast<mlir::RankedTensorType>(type);
    return tensor && !tensor.getEncoding();
  };
  return llvm::all_of(op->getOperandTypes(), plain) && llvm::all_of(op->getResultTypes(), plain);
}

/// A pattern that makes values of new types. The state of a sharded tensor is the encoding of its type, and which state
/// a new value would have is for the sharding rules to say, so these patterns leave encoded tensors alone.
template <typename OpTy> struct PlainTensorPattern : mlir::OpRewritePattern<OpTy> {
  using mlir::OpRewritePattern<OpTy>::OpRewritePattern;

  virtual llvm::LogicalResult rewrite(OpTy op, mlir::PatternRewriter &rewriter) const = 0;

  llvm::LogicalResult matchAndRewrite(OpTy op, mlir::PatternRewriter &rewriter) const final {
    if (!isPlain(op))
      return rewriter.notifyMatchFailure(op, "the state of encoded tensors belongs to the sharding passes");
    return rewrite(op, rewriter);
  }
};

/// The operation of that kind that defines `value`, when it works on plain tensors.
template <typename OpTy> OpTy plainProducer(mlir::Value value) {
  auto op = value.getDefiningOp<OpTy>();
  return op && isPlain(op) ? op : OpTy();
}

/// The constant of `type` that repeats the number `operand` repeats; null when it is not such a constant.
inline mlir::Attribute splatOfType(mlir::Attribute operand, mlir::RankedTensorType type) {
  auto elements = llvm::dyn_cast_or_null<mlir::DenseElementsAttr>(operand);
  if (!elements || !elements.isSplat())
    return {};
  return mlir::DenseElementsAttr::get(type, elements.getSplatValue<mlir::Attribute>());
}

/// Sums of padded tensors, and scatters added to something: in AdditionPatterns.cpp.
void populateAdditionPatterns(mlir::RewritePatternSet &patterns);
/// Lookups at constant places: in IndexPatterns.cpp.
void populateIndexPatterns(mlir::RewritePatternSet &patterns);

} // namespace nd

#endif // ND_LIB_DIALECT_ND_IR_PATTERNS_H
