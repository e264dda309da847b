//===- Constants.h - Numbers that constants hold -*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_LIB_IMPORT_ONNX_ANALYSIS_CONSTANTS_H
#define ND_LIB_IMPORT_ONNX_ANALYSIS_CONSTANTS_H

#include "mlir/IR/Value.h"
#include <optional>

namespace nd::onnx {

/// The number that all elements of a float tensor equal, through broadcasts and reshapes of constants.
std::optional<double> splatNumber(mlir::Value value);

} // namespace nd::onnx

#endif // ND_LIB_IMPORT_ONNX_ANALYSIS_CONSTANTS_H
