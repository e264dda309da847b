//===- Emitter.h - Elementwise formulas in few words ------------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_LIB_DIALECT_ND_IR_EMITTER_H
#define ND_LIB_DIALECT_ND_IR_EMITTER_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "nd/Dialect/ND/IR/Builders.h"

namespace nd {

/// Emits the formulas of the definitions, all in f32 and at one location. Operands of one operation have equal shapes.
class Emitter {
public:
  using Value = mlir::Value;

  Emitter(mlir::OpBuilder &builder, mlir::Location loc) : builder(builder), loc(loc) {}

  mlir::OpBuilder &builder;
  mlir::Location loc;

  Value add(Value a, Value b) { return mlir::arith::AddFOp::create(builder, loc, a, b); }
  Value sub(Value a, Value b) { return mlir::arith::SubFOp::create(builder, loc, a, b); }
  Value mul(Value a, Value b) { return mlir::arith::MulFOp::create(builder, loc, a, b); }
  Value div(Value a, Value b) { return mlir::arith::DivFOp::create(builder, loc, a, b); }
  Value add(Value a, double b) { return add(a, number(b, a)); }
  Value mul(Value a, double b) { return mul(a, number(b, a)); }
  Value div(Value a, double b) { return div(a, number(b, a)); }
  Value exp(Value a) { return mlir::math::ExpOp::create(builder, loc, a); }
  Value log(Value a) { return mlir::math::LogOp::create(builder, loc, a); }
  Value sqrt(Value a) { return mlir::math::SqrtOp::create(builder, loc, a); }
  Value tanh(Value a) { return mlir::math::TanhOp::create(builder, loc, a); }
  Value select(Value condition, Value whenTrue, Value whenFalse) {
    return nd::select(builder, loc, condition, whenTrue, whenFalse);
  }
  /// `a` equals a number, and is no NaN.
  Value equals(Value a, double b) {
    return mlir::arith::CmpFOp::create(builder, loc, mlir::arith::CmpFPredicate::OEQ, a, number(b, a));
  }
  Value compare(mlir::arith::CmpIPredicate predicate, Value a, Value b) {
    return mlir::arith::CmpIOp::create(builder, loc, predicate, a, b);
  }
  Value both(Value a, Value b) { return mlir::arith::AndIOp::create(builder, loc, a, b); }

  Value number(double value, Value like) { return splatLike(builder, loc, like, value); }
  Value f32(Value a) { return convertFloat(builder, loc, a, builder.getF32Type()); }
  /// Rounds to the element type of a result.
  Value round(Value a, mlir::RankedTensorType result) { return convertFloat(builder, loc, a, result.getElementType()); }
  Value max(Value a, llvm::ArrayRef<int64_t> dims) { return nd::reduce(builder, loc, ReductionKind::max, a, dims); }
  Value sum(Value a, llvm::ArrayRef<int64_t> dims) { return reduceSum(builder, loc, a, dims); }
  /// Repeats what a reduction of `like` over `dims` gave.
  Value over(Value a, Value like, llvm::ArrayRef<int64_t> dims) {
    return broadcastOver(builder, loc, a, tensorTypeOf(like).getShape(), dims);
  }
  /// Repeats a 0-d tensor, or one that holds the last dimensions.
  Value trailing(Value a, Value like) { return broadcastTrailing(builder, loc, a, tensorTypeOf(like).getShape()); }
  Value broadcast(Value a, llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<int64_t> dims) {
    return broadcastTo(builder, loc, a, shape, dims);
  }
  Value reshape(Value a, llvm::ArrayRef<int64_t> shape) { return nd::reshape(builder, loc, a, shape); }
};

} // namespace nd

#endif // ND_LIB_DIALECT_ND_IR_EMITTER_H
