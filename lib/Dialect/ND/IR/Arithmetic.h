//===- Arithmetic.h - Elementwise formulas as C++ ---------------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_LIB_DIALECT_ND_IR_ARITHMETIC_H
#define ND_LIB_DIALECT_ND_IR_ARITHMETIC_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "nd/Dialect/ND/IR/Builders.h"

namespace nd {

/// Emits elementwise operations on tensors of equal type at one location, so that formulas read as formulas.
struct Arithmetic {
  mlir::OpBuilder &builder;
  mlir::Location loc;

  mlir::Value add(mlir::Value a, mlir::Value b) { return make<mlir::arith::AddFOp>(a, b); }
  mlir::Value sub(mlir::Value a, mlir::Value b) { return make<mlir::arith::SubFOp>(a, b); }
  mlir::Value mul(mlir::Value a, mlir::Value b) { return make<mlir::arith::MulFOp>(a, b); }
  mlir::Value div(mlir::Value a, mlir::Value b) { return make<mlir::arith::DivFOp>(a, b); }
  mlir::Value neg(mlir::Value a) { return make<mlir::arith::NegFOp>(a); }
  mlir::Value square(mlir::Value a) { return mul(a, a); }

  mlir::Value add(mlir::Value a, double number) { return add(a, constant(a, number)); }
  mlir::Value mul(mlir::Value a, double number) { return mul(a, constant(a, number)); }
  mlir::Value constant(mlir::Value like, double number) { return splatLike(builder, loc, like, number); }

  mlir::Value compare(mlir::arith::CmpFPredicate predicate, mlir::Value a, mlir::Value b) {
    return make<mlir::arith::CmpFOp>(predicate, a, b);
  }
  mlir::Value compare(mlir::arith::CmpFPredicate predicate, mlir::Value a, double number) {
    return compare(predicate, a, constant(a, number));
  }
  mlir::Value both(mlir::Value a, mlir::Value b) { return make<mlir::arith::AndIOp>(a, b); }
  mlir::Value where(mlir::Value condition, mlir::Value whenTrue, mlir::Value whenFalse) {
    return make<mlir::arith::SelectOp>(condition, whenTrue, whenFalse);
  }
  /// `value` where `condition` holds, else zero: a zero that no infinity or NaN of `value` can spoil.
  mlir::Value keepWhere(mlir::Value condition, mlir::Value value) {
    return where(condition, value, constant(value, 0.0));
  }
  mlir::Value zeroWhere(mlir::Value condition, mlir::Value value) {
    return where(condition, constant(value, 0.0), value);
  }

  template <typename OpTy, typename... Args> mlir::Value make(Args &&...args) {
    return OpTy::create(builder, loc, std::forward<Args>(args)...);
  }
};

} // namespace nd

#endif // ND_LIB_DIALECT_ND_IR_ARITHMETIC_H
