//===- MaskPredicate.h - Masks as predicates over positions -----*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_LIB_IMPORT_ONNX_ANALYSIS_MASKPREDICATE_H
#define ND_LIB_IMPORT_ONNX_ANALYSIS_MASKPREDICATE_H

#include "mlir/IR/Value.h"
#include "llvm/ADT/SmallVector.h"
#include <optional>

namespace nd::onnx {

/// A key is visible to a query when all that is said here agrees: the terms of nd.attention.
struct MaskPredicate {
  bool causal = false;
  /// Query position - key position < window; 0: no window.
  int64_t window = 0;
  /// What `causal` and `window` compare where that is not the index: [B, S]. Null: the index.
  mlir::Value positions;
  /// Queries and keys with different values here do not see each other: [B, S].
  mlir::Value documents;
  /// Conjuncts over keys alone, each a boolean tensor and where its dimensions lie in [B, H, S, T].
  struct Padding {
    mlir::Value value;
    llvm::SmallVector<int64_t> dims;
  };
  llvm::SmallVector<Padding> paddings;
};

/// The predicate that `mask` (rank 4, [B or 1, H or 1, S or 1, T]; booleans, or floats that are 0 or very negative)
/// computes. Nothing when it is not the conjunction of such terms: then the mask is general.
std::optional<MaskPredicate> analyzeMask(mlir::Value mask, int64_t queries, int64_t keys);

/// A number so low that a softmax over scores never sees what it is added to.
bool isMinusInfinity(double number);

} // namespace nd::onnx

#endif // ND_LIB_IMPORT_ONNX_ANALYSIS_MASKPREDICATE_H
