//===- MathGradients.h - math: gradient rules -------------------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_LIB_DIALECT_ND_IR_MATHGRADIENTS_H
#define ND_LIB_DIALECT_ND_IR_MATHGRADIENTS_H

namespace mlir {
class MLIRContext;
} // namespace mlir

namespace nd {

/// Attaches the gradient rules of `math`, which must be loaded.
void attachMathGradients(mlir::MLIRContext *context);

} // namespace nd

#endif // ND_LIB_DIALECT_ND_IR_MATHGRADIENTS_H
