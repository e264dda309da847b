//===- ArithGradients.cpp - arith: gradient rules -------------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Numerics are PyTorch's, ties and zeros included. Comparisons and conversions between integers and floats need no
// rule: nothing of floats, or nothing that depends on a weight, goes through them.
//
//===----------------------------------------------------------------------===//

#include "ElementwiseGradient.h"
#include "MathGradients.h"
#include "nd/Dialect/ND/IR/ExternalModels.h"
#include "nd/Dialect/ND/IR/GradientType.h"

using namespace mlir;
using namespace nd;
using arith::CmpFPredicate;

namespace {

void addRule(GradientRule<arith::AddFOp> &rule) {
  rule.set(0, [&] { return rule.grad; });
  rule.set(1, [&] { return rule.grad; });
}

void subRule(GradientRule<arith::SubFOp> &rule) {
  rule.set(0, [&] { return rule.grad; });
  rule.set(1, [&] { return rule.emit.neg(rule.grad); });
}

void mulRule(GradientRule<arith::MulFOp> &rule) {
  rule.set(0, [&] { return rule.emit.mul(rule.grad, rule.operand(1)); });
  rule.set(1, [&] { return rule.emit.mul(rule.grad, rule.operand(0)); });
}

void divRule(GradientRule<arith::DivFOp> &rule) {
  Value divisor = rule.operand(1);
  rule.set(0, [&] { return rule.emit.div(rule.grad, divisor); });
  rule.set(1, [&] { return rule.emit.mul(rule.emit.neg(rule.grad), rule.emit.div(rule.result(), divisor)); });
}

void negRule(GradientRule<arith::NegFOp> &rule) {
  rule.set(0, [&] { return rule.emit.neg(rule.grad); });
}

/// torch.fmod: x - y * trunc(x / y).
void remRule(GradientRule<arith::RemFOp> &rule) {
  rule.set(0, [&] { return rule.grad; });
  rule.set(1, [&] {
    Value quotient = rule.emit.make<math::TruncOp>(rule.emit.div(rule.operand(0), rule.operand(1)));
    return rule.emit.mul(rule.emit.neg(rule.grad), quotient);
  });
}

/// The larger (smaller) operand receives the gradient. At a tie torch.maximum gives half to each operand, relu (the
/// other operand is the constant 0) nothing, and clamp (another constant) everything.
template <typename OpTy, bool isMaximum> void extremumRule(GradientRule<OpTy> &rule) {
  constexpr CmpFPredicate wins = isMaximum ? CmpFPredicate::OGT : CmpFPredicate::OLT;
  constexpr CmpFPredicate winsOrTies = isMaximum ? CmpFPredicate::OGE : CmpFPredicate::OLE;
  for (unsigned index : {0, 1}) {
    Value self = rule.operand(index), other = rule.operand(1 - index);
    std::optional<APFloat> constant = floatSplatOf(other);
    rule.set(index, [&] {
      if (constant && constant->isZero() && isMaximum)
        return rule.emit.keepWhere(rule.emit.compare(wins, self, other), rule.grad);
      Value kept = rule.emit.keepWhere(rule.emit.compare(winsOrTies, self, other), rule.grad);
      if (constant)
        return kept;
      Value tie = rule.emit.compare(CmpFPredicate::OEQ, self, other);
      return rule.emit.where(tie, rule.emit.mul(rule.grad, 0.5), kept);
    });
  }
}

void selectRule(GradientRule<arith::SelectOp> &rule) {
  rule.set(1, [&] { return rule.emit.keepWhere(rule.operand(0), rule.grad); });
  rule.set(2, [&] { return rule.emit.zeroWhere(rule.operand(0), rule.grad); });
}

template <typename OpTy> void conversionRule(GradientRule<OpTy> &rule) {
  Type elementType = gradientElementType(rule.operand(0));
  rule.set(0, [&] { return convertFloat(rule.emit.builder, rule.emit.loc, rule.grad, elementType); });
}

} // namespace

void nd::registerDifferentiableModels(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, arith::ArithDialect *) {
    attachGradient<arith::AddFOp, addRule>(context);
    attachGradient<arith::SubFOp, subRule>(context);
    attachGradient<arith::MulFOp, mulRule>(context);
    attachGradient<arith::DivFOp, divRule>(context);
    attachGradient<arith::NegFOp, negRule>(context);
    attachGradient<arith::RemFOp, remRule>(context);
    attachGradient<arith::MaximumFOp, extremumRule<arith::MaximumFOp, true>>(context);
    attachGradient<arith::MaxNumFOp, extremumRule<arith::MaxNumFOp, true>>(context);
    attachGradient<arith::MinimumFOp, extremumRule<arith::MinimumFOp, false>>(context);
    attachGradient<arith::MinNumFOp, extremumRule<arith::MinNumFOp, false>>(context);
    attachGradient<arith::SelectOp, selectRule>(context);
    attachGradient<arith::ExtFOp, conversionRule<arith::ExtFOp>>(context);
    attachGradient<arith::TruncFOp, conversionRule<arith::TruncFOp>>(context);
  });
  registry.addExtension(+[](MLIRContext *context, math::MathDialect *) { attachMathGradients(context); });
}
