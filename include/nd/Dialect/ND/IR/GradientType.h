//===- GradientType.h - Element types of gradients --------------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_DIALECT_ND_IR_GRADIENTTYPE_H
#define ND_DIALECT_ND_IR_GRADIENTTYPE_H

#include "mlir/IR/Value.h"

namespace nd {

/// The element type that a rule gives the gradient of `value`: that of the parameter that `value` is rounded from,
/// through views of it; else its own. So a parameter's gradient is summed in the parameter's type and never rounded.
mlir::Type gradientElementType(mlir::Value value);

} // namespace nd

#endif // ND_DIALECT_ND_IR_GRADIENTTYPE_H
