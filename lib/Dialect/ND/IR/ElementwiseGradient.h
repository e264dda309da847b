//===- ElementwiseGradient.h - Rules of upstream operations -----*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_LIB_DIALECT_ND_IR_ELEMENTWISEGRADIENT_H
#define ND_LIB_DIALECT_ND_IR_ELEMENTWISEGRADIENT_H

#include "Arithmetic.h"

namespace nd {

/// What a rule of an elementwise operation with one result sees and fills in.
template <typename OpTy> struct GradientRule {
  Arithmetic emit;
  OpTy op;
  mlir::Value grad;                       ///< of the result
  llvm::ArrayRef<bool> wanted;            ///< one per operand
  llvm::SmallVector<mlir::Value> results; ///< one per operand, null until set

  mlir::Value operand(unsigned index) { return op->getOperand(index); }
  mlir::Value result() { return op->getResult(0); }

  /// Sets the gradient of an operand to what `formula` emits, if anybody wants it.
  template <typename Formula> void set(unsigned index, Formula formula) {
    if (wanted[index])
      results[index] = formula();
  }
};

/// Attaches `rule` to an upstream operation as its `DifferentiableOpInterface`. An operand whose gradient the rule does
/// not set receives none.
template <typename OpTy, void (*rule)(GradientRule<OpTy> &)>
struct ElementwiseGradient : DifferentiableOpInterface::ExternalModel<ElementwiseGradient<OpTy, rule>, OpTy> {
  mlir::FailureOr<llvm::SmallVector<mlir::Value>> buildGradient(mlir::Operation *op, mlir::OpBuilder &builder,
                                                                llvm::ArrayRef<mlir::Value> resultGrads,
                                                                llvm::ArrayRef<bool> wanted) const {
    GradientRule<OpTy> state{{builder, op->getLoc()},
                             llvm::cast<OpTy>(op),
                             resultGrads.front(),
                             wanted,
                             llvm::SmallVector<mlir::Value>(op->getNumOperands())};
    rule(state);
    return std::move(state.results);
  }
};

/// Piecewise constant: the gradient is zero wherever it exists.
template <typename OpTy> void noGradient(GradientRule<OpTy> &) {}

template <typename OpTy, void (*rule)(GradientRule<OpTy> &)> void attachGradient(mlir::MLIRContext *context) {
  OpTy::template attachInterface<ElementwiseGradient<OpTy, rule>>(*context);
}

} // namespace nd

#endif // ND_LIB_DIALECT_ND_IR_ELEMENTWISEGRADIENT_H
