//===- TensorBuilder.h - ONNX's conventions as tensor code ------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// nd/Dialect/ND/IR/Builders.h at one location, and numpy's broadcasting and casts on top.
//
//===----------------------------------------------------------------------===//

#ifndef ND_LIB_IMPORT_ONNX_CONVERT_TENSORBUILDER_H
#define ND_LIB_IMPORT_ONNX_CONVERT_TENSORBUILDER_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "nd/Dialect/ND/IR/Builders.h"

namespace nd::onnx {

class TensorBuilder {
public:
  TensorBuilder(mlir::OpBuilder &builder, mlir::Location loc) : b(builder), where(loc) {}

  mlir::Location loc() const { return where; }
  mlir::OpBuilder &builder() { return b; }

  /// The shape that numpy gives operands of these shapes; nothing when they do not agree.
  static std::optional<llvm::SmallVector<int64_t>> broadcastShapes(llvm::ArrayRef<int64_t> lhs,
                                                                   llvm::ArrayRef<int64_t> rhs);

  /// numpy's broadcast of `value` to `shape`, which must be possible: sizes of 1 that stretch are reshaped away first.
  mlir::Value expandTo(mlir::Value value, llvm::ArrayRef<int64_t> shape);

  mlir::Value constant(mlir::DenseElementsAttr elements) { return mlir::arith::ConstantOp::create(b, where, elements); }
  mlir::Value ints(llvm::ArrayRef<int64_t> values);
  /// One number in the shape and element type of `like`.
  mlir::Value number(mlir::Value like, double value) { return nd::splatLike(b, where, like, value); }
  mlir::Value integer(mlir::Value like, int64_t value) { return nd::intSplatLike(b, where, like, value); }

  mlir::Value reshape(mlir::Value value, llvm::ArrayRef<int64_t> shape) { return nd::reshape(b, where, value, shape); }
  mlir::Value transpose(mlir::Value value, llvm::ArrayRef<int64_t> permutation) {
    return nd::transpose(b, where, value, permutation);
  }
  mlir::Value slice(mlir::Value value, int64_t dim, int64_t start, int64_t size) {
    return nd::slice(b, where, value, dim, start, size);
  }
  mlir::Value concat(mlir::ValueRange values, int64_t dim) { return nd::concat(b, where, values, dim); }
  mlir::Value iota(llvm::ArrayRef<int64_t> shape, int64_t dim) {
    return nd::iota(b, where, b.getI64Type(), shape, dim);
  }
  mlir::Value select(mlir::Value condition, mlir::Value whenTrue, mlir::Value whenFalse) {
    return nd::select(b, where, condition, whenTrue, whenFalse);
  }
  mlir::Value compare(mlir::arith::CmpFPredicate predicate, mlir::Value lhs, mlir::Value rhs) {
    return mlir::arith::CmpFOp::create(b, where, predicate, lhs, rhs);
  }
  mlir::Value compare(mlir::arith::CmpIPredicate predicate, mlir::Value lhs, mlir::Value rhs) {
    return mlir::arith::CmpIOp::create(b, where, predicate, lhs, rhs);
  }
  mlir::Value logicalNot(mlir::Value value);
  template <typename Op, typename... Values> mlir::Value create(Values... values) {
    return Op::create(b, where, values...);
  }

  /// A reduction over `dims`, which stay with size 1 when `keep`.
  mlir::Value reduce(ReductionKind kind, mlir::Value value, llvm::ArrayRef<int64_t> dims, bool keep);
  mlir::Value mean(mlir::Value value, llvm::ArrayRef<int64_t> dims, bool keep);
  /// `value`, reduced over `dims`, back at `shape`.
  mlir::Value broadcastOver(mlir::Value value, llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<int64_t> dims) {
    return nd::broadcastOver(b, where, value, shape, dims);
  }

  /// Conversion between element types with ONNX's rules: to bool is "not zero", float to integer truncates.
  mlir::Value cast(mlir::Value value, mlir::Type elementType);

  /// numpy's matmul: batch dimensions broadcast, vectors get and lose a dimension. Null when the shapes do not agree.
  mlir::Value matmul(mlir::Value lhs, mlir::Value rhs);

private:
  mlir::OpBuilder &b;
  mlir::Location where;
};

/// The element type that nd computes with: all integers are i64, booleans i1.
mlir::Type computeType(mlir::Type elementType);
mlir::DenseElementsAttr toComputeType(mlir::DenseElementsAttr elements);

} // namespace nd::onnx

#endif // ND_LIB_IMPORT_ONNX_CONVERT_TENSORBUILDER_H
