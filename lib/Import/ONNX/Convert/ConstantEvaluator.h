//===- ConstantEvaluator.h - Values known at import -------------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_LIB_IMPORT_ONNX_CONVERT_CONSTANTEVALUATOR_H
#define ND_LIB_IMPORT_ONNX_CONVERT_CONSTANTEVALUATOR_H

#include "mlir/IR/Value.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"
#include <optional>

namespace nd::onnx {

/// A small tensor of known elements, row-major. Booleans are integers 0 and 1.
struct ConstantTensor {
  llvm::SmallVector<int64_t> shape;
  bool isFloat = false;
  llvm::SmallVector<int64_t> ints;
  llvm::SmallVector<double> floats;

  int64_t size() const { return isFloat ? floats.size() : ints.size(); }
};

/// Evaluates shape arithmetic: a value built from constants by structural operations and arithmetic, on demand, so that
/// nothing is folded that no one asks for (masks and position tables stay symbolic). Values of more than `maxElements`
/// elements, or behind longer chains than `maxDepth`, are not known.
class ConstantEvaluator {
public:
  static constexpr int64_t maxElements = 4096;
  static constexpr unsigned maxDepth = 1000;

  std::optional<ConstantTensor> evaluate(mlir::Value value);

private:
  std::optional<ConstantTensor> compute(mlir::Value value);

  llvm::DenseMap<mlir::Value, std::optional<ConstantTensor>> known;
  unsigned depth = 0;
};

} // namespace nd::onnx

#endif // ND_LIB_IMPORT_ONNX_CONVERT_CONSTANTEVALUATOR_H
