//===- VectorMath.h - Arithmetic on lanes -----------------------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_LIB_CODEGEN_KERNELS_VECTORMATH_H
#define ND_LIB_CODEGEN_KERNELS_VECTORMATH_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace nd {

/// The element type itself for one lane, a vector for more.
inline mlir::Type laneType(mlir::Type element, int64_t lanes) {
  return lanes == 1 ? element : mlir::VectorType::get({lanes}, element);
}

/// The type in which an element is computed. bf16 is computed in f32: its value is one whose low half is zero.
inline mlir::Type registerType(mlir::Type element) {
  return element.isBF16() ? mlir::Float32Type::get(element.getContext()) : element;
}

/// Emits arithmetic on scalars or vectors, whichever its operands are.
class LaneBuilder : public mlir::ImplicitLocOpBuilder {
public:
  using ImplicitLocOpBuilder::ImplicitLocOpBuilder;

  /// A number as a constant of a float or integer type, or of a vector of them.
  mlir::Value number(mlir::Type type, double value);
  mlir::Value integer(mlir::Type type, int64_t value);
  mlir::Value i64(int64_t value) { return integer(getI64Type(), value); }
  /// A scalar in all lanes; vectors are returned as they are.
  mlir::Value splat(mlir::Value value, int64_t lanes);
  /// 0, 1, 2, ... in lanes of an integer type.
  mlir::Value laneNumbers(mlir::Type element, int64_t lanes);

  mlir::Value add(mlir::Value a, mlir::Value b);
  mlir::Value sub(mlir::Value a, mlir::Value b);
  mlir::Value mul(mlir::Value a, mlir::Value b);
  mlir::Value div(mlir::Value a, mlir::Value b);
  /// a * b + c, rounded once.
  mlir::Value fma(mlir::Value a, mlir::Value b, mlir::Value c);
  mlir::Value compare(mlir::arith::CmpFPredicate predicate, mlir::Value a, mlir::Value b);
  mlir::Value select(mlir::Value condition, mlir::Value a, mlir::Value b);
  mlir::Value bitcast(mlir::Value value, mlir::Type element);
  /// Coefficients from the highest power down.
  mlir::Value polynomial(mlir::Value x, llvm::ArrayRef<double> coefficients);

  /// f32 rounded to the nearest bf16, to even at a tie; a NaN stays a NaN. Processors without bf16 get the same bits.
  mlir::Value roundToBF16(mlir::Value x);
  /// The upper halves of f32 that have been rounded, as i16, and back.
  mlir::Value packBF16(mlir::Value x);
  mlir::Value unpackBF16(mlir::Value bits);

  /// Integers: base to a power that is not negative, by repeated squaring.
  mlir::Value power(mlir::Value base, mlir::Value exponent);

  // f32 only. NaN yields NaN; errors below 2 ulp unless said. exp is 0 below -86.6 and infinite where it overflows.
  mlir::Value exp(mlir::Value x);
  mlir::Value log(mlir::Value x);
  mlir::Value log1p(mlir::Value x);
  mlir::Value expm1(mlir::Value x);
  mlir::Value tanh(mlir::Value x);
  mlir::Value erf(mlir::Value x);
};

} // namespace nd

#endif // ND_LIB_CODEGEN_KERNELS_VECTORMATH_H
