//===- Positions.h - Integer tensors that are linear in their index -*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_LIB_IMPORT_ONNX_ANALYSIS_POSITIONS_H
#define ND_LIB_IMPORT_ONNX_ANALYSIS_POSITIONS_H

#include "mlir/IR/Value.h"
#include "llvm/ADT/SmallVector.h"
#include <optional>

namespace nd::onnx {

/// An integer tensor whose element at index i is offset + sum of coefficients[d] * i[d].
struct Linear {
  llvm::SmallVector<int64_t> coefficients;
  int64_t offset = 0;

  bool isConstant() const {
    return llvm::all_of(coefficients, [](int64_t c) { return c == 0; });
  }
  /// The one dimension that it counts along from zero, if that is all it does.
  std::optional<int64_t> countedDim() const;
};

/// The linear form of `value`, by its definition; a listed constant is recognised when it counts along one dimension.
/// Dimensions of size 1 have coefficient 0.
std::optional<Linear> analyzeLinear(mlir::Value value);

/// Elements of a float tensor that are whole numbers convert to integers exactly: this sees through such conversions.
mlir::Value lookThroughCasts(mlir::Value value);

/// Whether no element can be negative. Integer inputs of a model hold indices, which are not.
bool isNonNegative(mlir::Value value);

/// How the elements of a reshape's result relate to its operand when it only adds and removes dimensions of size 1:
/// for each dimension of the result the one of the operand, or -1. Nothing for other reshapes.
std::optional<llvm::SmallVector<int64_t>> unitReshapeMap(llvm::ArrayRef<int64_t> from, llvm::ArrayRef<int64_t> to);

} // namespace nd::onnx

#endif // ND_LIB_IMPORT_ONNX_ANALYSIS_POSITIONS_H
