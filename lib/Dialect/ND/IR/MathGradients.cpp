//===- MathGradients.cpp - math: gradient rules ---------------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Numerics are PyTorch's. Where a derivative is cheap in terms of the result, it is: the result is often alive anyway.
//
//===----------------------------------------------------------------------===//

#include "MathGradients.h"
#include "ElementwiseGradient.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace nd;
using arith::CmpFPredicate;

namespace {

/// A function of one operand: `x`, its value `y`, and the gradient `g` of `y` give the gradient of `x`.
using Formula = Value (*)(Arithmetic &emit, Value x, Value y, Value g);

template <typename OpTy, Formula formula> void unaryRule(GradientRule<OpTy> &rule) {
  rule.set(0, [&] { return formula(rule.emit, rule.operand(0), rule.result(), rule.grad); });
}

Value expFormula(Arithmetic &e, Value x, Value y, Value g) { return e.mul(g, y); }
Value exp2Formula(Arithmetic &e, Value x, Value y, Value g) { return e.mul(e.mul(g, y), llvm::numbers::ln2); }
Value expM1Formula(Arithmetic &e, Value x, Value y, Value g) { return e.mul(g, e.add(y, 1.0)); }
Value logFormula(Arithmetic &e, Value x, Value y, Value g) { return e.div(g, x); }
Value log1pFormula(Arithmetic &e, Value x, Value y, Value g) { return e.div(g, e.add(x, 1.0)); }
Value log2Formula(Arithmetic &e, Value x, Value y, Value g) { return e.div(g, e.mul(x, llvm::numbers::ln2)); }
Value log10Formula(Arithmetic &e, Value x, Value y, Value g) { return e.div(g, e.mul(x, llvm::numbers::ln10)); }
Value sqrtFormula(Arithmetic &e, Value x, Value y, Value g) { return e.div(g, e.mul(y, 2.0)); }
Value rsqrtFormula(Arithmetic &e, Value x, Value y, Value g) { return e.mul(e.mul(g, e.mul(e.square(y), y)), -0.5); }
Value cbrtFormula(Arithmetic &e, Value x, Value y, Value g) { return e.div(g, e.mul(e.square(y), 3.0)); }

/// 1 - y^2
Value oneMinusSquare(Arithmetic &e, Value y) { return e.sub(e.constant(y, 1.0), e.square(y)); }
/// 1 + y^2
Value onePlusSquare(Arithmetic &e, Value y) { return e.add(e.square(y), 1.0); }
Value rsqrt(Arithmetic &e, Value x) { return e.make<math::RsqrtOp>(x); }

Value sinFormula(Arithmetic &e, Value x, Value y, Value g) { return e.mul(g, e.make<math::CosOp>(x)); }
Value cosFormula(Arithmetic &e, Value x, Value y, Value g) { return e.mul(e.neg(g), e.make<math::SinOp>(x)); }
Value tanFormula(Arithmetic &e, Value x, Value y, Value g) { return e.mul(g, onePlusSquare(e, y)); }
Value sinhFormula(Arithmetic &e, Value x, Value y, Value g) { return e.mul(g, e.make<math::CoshOp>(x)); }
Value coshFormula(Arithmetic &e, Value x, Value y, Value g) { return e.mul(g, e.make<math::SinhOp>(x)); }
Value tanhFormula(Arithmetic &e, Value x, Value y, Value g) { return e.mul(g, oneMinusSquare(e, y)); }
Value asinFormula(Arithmetic &e, Value x, Value y, Value g) { return e.mul(g, rsqrt(e, oneMinusSquare(e, x))); }
Value acosFormula(Arithmetic &e, Value x, Value y, Value g) { return e.mul(e.neg(g), rsqrt(e, oneMinusSquare(e, x))); }
Value atanFormula(Arithmetic &e, Value x, Value y, Value g) { return e.div(g, onePlusSquare(e, x)); }
Value asinhFormula(Arithmetic &e, Value x, Value y, Value g) { return e.mul(g, rsqrt(e, onePlusSquare(e, x))); }
Value acoshFormula(Arithmetic &e, Value x, Value y, Value g) { return e.mul(g, rsqrt(e, e.add(e.square(x), -1.0))); }
Value atanhFormula(Arithmetic &e, Value x, Value y, Value g) { return e.div(g, oneMinusSquare(e, x)); }

/// 2/sqrt(pi) exp(-x^2)
Value erfSlope(Arithmetic &e, Value x) {
  return e.mul(e.make<math::ExpOp>(e.neg(e.square(x))), 2.0 * llvm::numbers::inv_sqrtpi);
}
Value erfFormula(Arithmetic &e, Value x, Value y, Value g) { return e.mul(g, erfSlope(e, x)); }
Value erfcFormula(Arithmetic &e, Value x, Value y, Value g) { return e.mul(e.neg(g), erfSlope(e, x)); }

/// The sign of zero is zero.
Value absFormula(Arithmetic &e, Value x, Value y, Value g) {
  Value negative = e.compare(CmpFPredicate::OLT, x, 0.0), positive = e.compare(CmpFPredicate::OGT, x, 0.0);
  return e.where(positive, g, e.keepWhere(negative, e.neg(g)));
}

/// x^c for a constant c; the powers that models use need no call of pow.
Value powConstantSlope(Arithmetic &e, Value x, double exponent) {
  if (exponent == 2.0)
    return e.mul(x, 2.0);
  if (exponent == 3.0)
    return e.mul(e.square(x), 3.0);
  if (exponent == 1.0)
    return e.constant(x, 1.0);
  return e.mul(e.make<math::PowFOp>(x, e.constant(x, exponent - 1.0)), exponent);
}

void powRule(GradientRule<math::PowFOp> &rule) {
  Arithmetic &e = rule.emit;
  Value base = rule.operand(0), exponent = rule.operand(1), g = rule.grad;
  rule.set(0, [&]() -> Value {
    if (std::optional<APFloat> constant = floatSplatOf(exponent)) {
      bool lossless;
      constant->convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &lossless);
      if (constant->isZero())
        return {};
      return e.mul(g, powConstantSlope(e, base, constant->convertToDouble()));
    }
    Value slope = e.mul(exponent, e.make<math::PowFOp>(base, e.add(exponent, -1.0)));
    return e.zeroWhere(e.compare(CmpFPredicate::OEQ, exponent, 0.0), e.mul(g, slope));
  });
  rule.set(1, [&] {
    // 0^c is flat in c where c >= 0, though log(0) is infinite.
    Value flat = e.both(e.compare(CmpFPredicate::OEQ, base, 0.0), e.compare(CmpFPredicate::OGE, exponent, 0.0));
    return e.zeroWhere(flat, e.mul(g, e.mul(rule.result(), e.make<math::LogOp>(base))));
  });
}

/// An integer exponent: n x^(n-1), where n = 0 gives zero.
void fpowiRule(GradientRule<math::FPowIOp> &rule) {
  Arithmetic &e = rule.emit;
  Value base = rule.operand(0), exponent = rule.operand(1);
  rule.set(0, [&] {
    Value one = intSplatLike(e.builder, e.loc, exponent, 1);
    Value power = e.make<math::FPowIOp>(base, e.make<arith::SubIOp>(exponent, one));
    Value factor = e.make<arith::SIToFPOp>(base.getType(), exponent);
    Value zero = e.compare(CmpFPredicate::OEQ, factor, 0.0);
    return e.zeroWhere(zero, e.mul(rule.grad, e.mul(factor, power)));
  });
}

void fmaRule(GradientRule<math::FmaOp> &rule) {
  rule.set(0, [&] { return rule.emit.mul(rule.grad, rule.operand(1)); });
  rule.set(1, [&] { return rule.emit.mul(rule.grad, rule.operand(0)); });
  rule.set(2, [&] { return rule.grad; });
}

/// torch.clamp with tensors as bounds: inside, bounds included, the value receives the gradient; outside the bound
/// does, and the upper one where the bounds cross.
void clampRule(GradientRule<math::ClampFOp> &rule) {
  Arithmetic &e = rule.emit;
  Value value = rule.operand(0), low = rule.operand(1), high = rule.operand(2), g = rule.grad;
  auto less = [&](Value a, Value b) { return e.compare(CmpFPredicate::OLT, a, b); };
  auto atMost = [&](Value a, Value b) { return e.compare(CmpFPredicate::OLE, a, b); };
  rule.set(0, [&] { return e.keepWhere(e.both(atMost(low, value), atMost(value, high)), g); });
  rule.set(1, [&] { return e.keepWhere(e.both(less(value, low), less(low, high)), g); });
  rule.set(2, [&] { return e.where(less(high, value), g, e.keepWhere(less(high, low), g)); });
}

void atan2Rule(GradientRule<math::Atan2Op> &rule) {
  Arithmetic &e = rule.emit;
  Value y = rule.operand(0), x = rule.operand(1);
  auto scaled = [&](Value numerator) { return e.mul(rule.grad, e.div(numerator, e.add(e.square(x), e.square(y)))); };
  rule.set(0, [&] { return scaled(x); });
  rule.set(1, [&] { return e.neg(scaled(y)); });
}

/// The sign's operand is flat; at zero so is the magnitude's.
void copySignRule(GradientRule<math::CopySignOp> &rule) {
  Arithmetic &e = rule.emit;
  Value magnitude = rule.operand(0);
  rule.set(0, [&] {
    Value ratio = e.div(rule.result(), magnitude);
    return e.zeroWhere(e.compare(CmpFPredicate::OEQ, magnitude, 0.0), e.mul(rule.grad, ratio));
  });
}

template <typename OpTy, Formula formula> void attachUnary(MLIRContext *context) {
  attachGradient<OpTy, unaryRule<OpTy, formula>>(context);
}

template <typename... OpTys> void attachNone(MLIRContext *context) {
  (attachGradient<OpTys, noGradient<OpTys>>(context), ...);
}

} // namespace

void nd::attachMathGradients(MLIRContext *context) {
  attachUnary<math::AbsFOp, absFormula>(context);
  attachUnary<math::AcosOp, acosFormula>(context);
  attachUnary<math::AcoshOp, acoshFormula>(context);
  attachUnary<math::AsinOp, asinFormula>(context);
  attachUnary<math::AsinhOp, asinhFormula>(context);
  attachUnary<math::AtanOp, atanFormula>(context);
  attachUnary<math::AtanhOp, atanhFormula>(context);
  attachUnary<math::CbrtOp, cbrtFormula>(context);
  attachUnary<math::CosOp, cosFormula>(context);
  attachUnary<math::CoshOp, coshFormula>(context);
  attachUnary<math::ErfOp, erfFormula>(context);
  attachUnary<math::ErfcOp, erfcFormula>(context);
  attachUnary<math::Exp2Op, exp2Formula>(context);
  attachUnary<math::ExpM1Op, expM1Formula>(context);
  attachUnary<math::ExpOp, expFormula>(context);
  attachUnary<math::Log10Op, log10Formula>(context);
  attachUnary<math::Log1pOp, log1pFormula>(context);
  attachUnary<math::Log2Op, log2Formula>(context);
  attachUnary<math::LogOp, logFormula>(context);
  attachUnary<math::RsqrtOp, rsqrtFormula>(context);
  attachUnary<math::SinOp, sinFormula>(context);
  attachUnary<math::SinhOp, sinhFormula>(context);
  attachUnary<math::SqrtOp, sqrtFormula>(context);
  attachUnary<math::TanOp, tanFormula>(context);
  attachUnary<math::TanhOp, tanhFormula>(context);
  attachGradient<math::Atan2Op, atan2Rule>(context);
  attachGradient<math::ClampFOp, clampRule>(context);
  attachGradient<math::CopySignOp, copySignRule>(context);
  attachGradient<math::FPowIOp, fpowiRule>(context);
  attachGradient<math::FmaOp, fmaRule>(context);
  attachGradient<math::PowFOp, powRule>(context);
  attachNone<math::CeilOp, math::FloorOp, math::RoundEvenOp, math::RoundOp, math::TruncOp>(context);
}
