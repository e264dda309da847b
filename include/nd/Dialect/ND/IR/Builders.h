//===- Builders.h - Short forms for building tensor code --------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Result types are computed, never given, and carry no encoding: these builders serve passes that work on plain tensors
// (import, training, decomposition, and everything after partitioning). A builder whose operation would change nothing
// returns its operand.
//
//===----------------------------------------------------------------------===//

#ifndef ND_DIALECT_ND_IR_BUILDERS_H
#define ND_DIALECT_ND_IR_BUILDERS_H

#include "nd/Dialect/ND/IR/ND.h"

namespace nd {

mlir::RankedTensorType tensorTypeOf(mlir::Value value);

/// A constant of `shape` that holds one number everywhere; `elementType` is of floats or integers.
mlir::Value splat(mlir::OpBuilder &builder, mlir::Location loc, mlir::Type elementType, llvm::ArrayRef<int64_t> shape,
                  double number);
/// The same with shape and element type of `like`.
mlir::Value splatLike(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value like, double number);
mlir::Value intSplatLike(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value like, int64_t number);
/// A 0-d constant.
mlir::Value scalar(mlir::OpBuilder &builder, mlir::Location loc, mlir::Type elementType, double number);

/// The number that every element of a constant equals; nothing when `value` is no such constant.
std::optional<llvm::APFloat> floatSplatOf(mlir::Value value);
/// Whether `value` is a constant of positive zeros (floats) or zeros (integers).
bool isZeroSplat(mlir::Value value);

/// Dimension i of `value` becomes dimension dims[i] of `shape`.
mlir::Value broadcastTo(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value, llvm::ArrayRef<int64_t> shape,
                        llvm::ArrayRef<int64_t> dims);
/// A 0-d tensor everywhere.
mlir::Value broadcastScalar(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value,
                            llvm::ArrayRef<int64_t> shape);
/// `value` holds the last dimensions of `shape`.
mlir::Value broadcastTrailing(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value,
                              llvm::ArrayRef<int64_t> shape);
/// `value` is what a reduction of `shape` over `dims` yields: puts those dimensions back.
mlir::Value broadcastOver(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value,
                          llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<int64_t> dims);

/// Dimensions in any order.
mlir::Value reduce(mlir::OpBuilder &builder, mlir::Location loc, ReductionKind kind, mlir::Value value,
                   llvm::ArrayRef<int64_t> dims);
mlir::Value reduceSum(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value, llvm::ArrayRef<int64_t> dims);
/// Sum over all dimensions to a 0-d tensor.
mlir::Value reduceSumAll(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value);

mlir::Value reshape(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value, llvm::ArrayRef<int64_t> shape);
mlir::Value transpose(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value,
                      llvm::ArrayRef<int64_t> permutation);
/// `size` elements of one dimension from `start` on.
mlir::Value slice(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value, int64_t dim, int64_t start,
                  int64_t size);
mlir::Value concat(mlir::OpBuilder &builder, mlir::Location loc, mlir::ValueRange values, int64_t dim);
mlir::Value iota(mlir::OpBuilder &builder, mlir::Location loc, mlir::Type elementType, llvm::ArrayRef<int64_t> shape,
                 int64_t dim);
mlir::Value dotGeneral(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value lhs, mlir::Value rhs,
                       llvm::ArrayRef<int64_t> lhsBatch, llvm::ArrayRef<int64_t> rhsBatch,
                       llvm::ArrayRef<int64_t> lhsContract, llvm::ArrayRef<int64_t> rhsContract,
                       mlir::Type resultElementType);

/// Rounds to or widens from another float type, as needed.
mlir::Value convertFloat(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value, mlir::Type elementType);
mlir::Value select(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value condition, mlir::Value whenTrue,
                   mlir::Value whenFalse);

/// The type with another shape and no encoding.
mlir::RankedTensorType withShape(mlir::RankedTensorType type, llvm::ArrayRef<int64_t> shape);

/// The inverse of a permutation.
llvm::SmallVector<int64_t> invertPermutation(llvm::ArrayRef<int64_t> permutation);
/// 0, 1, ..., count - 1.
llvm::SmallVector<int64_t> sequence(int64_t count, int64_t start = 0);

} // namespace nd

#endif // ND_DIALECT_ND_IR_BUILDERS_H
