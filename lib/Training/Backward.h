//===- Backward.h - Reverse-mode differentiation of a block -----*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_LIB_TRAINING_BACKWARD_H
#define ND_LIB_TRAINING_BACKWARD_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"

namespace nd {

/// Gradients of one value of a block with respect to some of the block's arguments.
///
/// A value is *active* when it is of floats and computed from one of those arguments. Operations are visited last to
/// first; when an operation is reached, all uses of its results have been visited, so the gradients of its results are
/// complete. Only active values receive gradients, and only operations with an active operand are asked for their rule.
class Backward {
public:
  Backward(mlir::Block &block, llvm::ArrayRef<mlir::Value> parameters);

  bool isActive(mlir::Value value) const { return active.contains(value); }

  /// Emits the backward computation from `seed`, the gradient of `root`, at the builder's insertion point, which every
  /// operation of the block precedes. Fails, with an error on the operation, where a rule is missing.
  mlir::LogicalResult run(mlir::OpBuilder &builder, mlir::Value root, mlir::Value seed);

  /// After `run`: the gradient of an argument, null where none flows.
  mlir::Value getGradient(mlir::Value parameter) const { return gradients.lookup(parameter); }

private:
  /// Checks that every active operation on a path to `root` has a rule; names the first that has none.
  mlir::LogicalResult checkRules(mlir::Value root);
  void accumulate(mlir::OpBuilder &builder, mlir::Value value, mlir::Value gradient);
  /// The complete gradient of a value; null when nothing has arrived.
  mlir::Value take(mlir::Value value);
  mlir::LogicalResult visit(mlir::OpBuilder &builder, mlir::Operation *op);

  mlir::Block &block;
  llvm::SmallVector<mlir::Value> parameters;
  llvm::DenseSet<mlir::Value> active;
  /// The sum of what has arrived for a value so far.
  llvm::DenseMap<mlir::Value, mlir::Value> arrived;
  llvm::DenseMap<mlir::Value, mlir::Value> gradients;
};

} // namespace nd

#endif // ND_LIB_TRAINING_BACKWARD_H
