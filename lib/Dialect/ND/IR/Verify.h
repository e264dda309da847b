//===- Verify.h - What the verifiers of the dialect share -------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Every check emits one error on the operation that says what was expected and what was found. Only shapes and element
// types are compared: the encoding of a tensor type belongs to the sharding passes.
//
//===----------------------------------------------------------------------===//

#ifndef ND_LIB_DIALECT_ND_IR_VERIFY_H
#define ND_LIB_DIALECT_ND_IR_VERIFY_H

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Operation.h"

namespace nd::verify {

/// "[2, 3]", as shapes and lists of dimensions appear in messages.
std::string text(llvm::ArrayRef<int64_t> list);

/// The number of elements; nothing when it does not fit.
std::optional<int64_t> elementCount(llvm::ArrayRef<int64_t> shape);

/// The shape without the listed dimensions.
llvm::SmallVector<int64_t> without(llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<int64_t> dims);

/// `dim` lies in [0, rank).
llvm::LogicalResult dimInRange(mlir::Operation *op, llvm::StringRef name, int64_t dim, int64_t rank);

/// Every dimension lies in [0, rank) and none repeats.
llvm::LogicalResult distinctDims(mlir::Operation *op, llvm::StringRef name, llvm::ArrayRef<int64_t> dims, int64_t rank);

/// Every dimension lies in [0, rank) and each is larger than the one before.
llvm::LogicalResult increasingDims(mlir::Operation *op, llvm::StringRef name, llvm::ArrayRef<int64_t> dims,
                                   int64_t rank);

llvm::LogicalResult rank(mlir::Operation *op, llvm::StringRef name, mlir::Type type, int64_t expected,
                         llvm::StringRef meaning);

llvm::LogicalResult shape(mlir::Operation *op, llvm::StringRef name, mlir::Type type, llvm::ArrayRef<int64_t> expected);

llvm::LogicalResult elementType(mlir::Operation *op, llvm::StringRef name, mlir::Type type, mlir::Type expected);

/// Shape and element type, as for a pair that differs in nothing but its encoding.
llvm::LogicalResult sameTensor(mlir::Operation *op, llvm::StringRef name, mlir::Type type, llvm::StringRef otherName,
                               mlir::Type other);

/// Elements are floats, or integers wider than a boolean.
llvm::LogicalResult numeric(mlir::Operation *op, llvm::StringRef name, mlir::Type type);

/// A finite number in [low, high].
llvm::LogicalResult inRange(mlir::Operation *op, llvm::StringRef name, double value, double low, double high);

} // namespace nd::verify

#endif // ND_LIB_DIALECT_ND_IR_VERIFY_H
