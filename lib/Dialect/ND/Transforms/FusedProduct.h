//===- FusedProduct.h - A product whose output is cut in parts --*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_LIB_DIALECT_ND_TRANSFORMS_FUSEDPRODUCT_H
#define ND_LIB_DIALECT_ND_TRANSFORMS_FUSEDPRODUCT_H

#include "nd/Dialect/ND/IR/Builders.h"
#include "llvm/ADT/MapVector.h"

namespace nd {

/// The product of a weight whose output dimension is cut by slices into contiguous parts, everything between the
/// product and the slices, and the biases added on the way.
///
/// Invariants after `match`: in every value of the chain the outputs are the dimensions listed for it, major to minor;
/// all its readers are in the chain or are slices that cut the first of these dimensions and nothing else; the
/// intervals that the slices take are disjoint, in order, and cover all outputs.
class FusedProduct {
public:
  /// Outputs [begin, end) of the weight.
  struct Interval {
    int64_t begin, end;
    int64_t size() const { return end - begin; }
    bool operator<(const Interval &other) const { return std::tie(begin, end) < std::tie(other.begin, other.end); }
    bool operator==(const Interval &other) const { return begin == other.begin && end == other.end; }
  };
  /// A weight or bias and its dimension of outputs.
  struct Parameter {
    mlir::Value value;
    int64_t dim;
  };

  /// Nothing when `weight` is no such weight. `isWeight` says which values are parameters.
  static std::optional<FusedProduct> match(mlir::Value weight, llvm::function_ref<bool(mlir::Value)> isWeight);

  llvm::ArrayRef<Interval> getIntervals() const { return intervals; }
  llvm::ArrayRef<Parameter> getParameters() const { return parameters; }

  /// Computes each part from its own parameters, parts[p][i] for parameter p and interval i; the old product goes.
  void rewrite(llvm::ArrayRef<llvm::SmallVector<mlir::Value>> parts);

private:
  using Dims = llvm::SmallVector<int64_t, 2>;

  bool follow(llvm::function_ref<bool(mlir::Value)> isWeight);
  bool followUser(mlir::Value value, mlir::Operation *user, llvm::function_ref<bool(mlir::Value)> isWeight);
  bool addToChain(mlir::Operation *op, Dims outputs);
  bool addBias(mlir::Value operand, const Dims &outputs, llvm::function_ref<bool(mlir::Value)> isWeight);
  bool orderIntervals();
  mlir::Value rebuildOperand(mlir::OpBuilder &builder, mlir::Value operand, const Dims &outputs, Interval interval,
                             llvm::DenseMap<mlir::Value, mlir::Value> &rebuilt);
  /// The shape of a value of the chain when it has the outputs of `interval` only.
  llvm::SmallVector<int64_t> shapeOf(mlir::Value value, const Dims &outputs, Interval interval) const;

  DotGeneralOp product;
  int64_t size = 0; ///< number of outputs
  llvm::SmallVector<Parameter> parameters;
  llvm::SmallVector<Interval> intervals;
  llvm::MapVector<mlir::Value, Dims> chain; ///< results, each behind its operands
  llvm::SmallVector<std::pair<SliceOp, Interval>> cuts;
};

} // namespace nd

#endif // ND_LIB_DIALECT_ND_TRANSFORMS_FUSEDPRODUCT_H
