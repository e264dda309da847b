//===- Analysis.h - What plans read of a program ----------------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_LIB_SHARDING_ANALYSIS_H
#define ND_LIB_SHARDING_ANALYSIS_H

#include "DimensionClasses.h"
#include "Program.h"
#include "nd/Dialect/ND/IR/Copies.h"
#include "llvm/ADT/DenseSet.h"

namespace nd {

/// The rules of all operations, the classes of all dimensions, and the phase of every operation.
class Analysis {
public:
  struct Step {
    mlir::Operation *op;
    ShardingRule rule;
  };

  /// Fails with an error for an operation without a rule.
  static mlir::FailureOr<Analysis> get(Program &program);

  llvm::ArrayRef<Step> getSteps() const { return steps; }
  const DimensionClasses &getClasses() const { return classes; }

  /// What the loss depends on; everything where there is no loss.
  bool isForward(mlir::Operation *op) const { return forward.contains(op); }
  /// Operations behind the gradients: norm, clipping, updates.
  bool isUpdate(mlir::Operation *op) const { return update.contains(op); }
  /// The parameter whose gradient a value is, as the optimizer reads it, or before its copies are summed; null for any
  /// other value.
  mlir::BlockArgument getParameterOfGradient(mlir::Value value) const { return gradients.lookup(value); }

  /// The operation that updates a parameter, or null.
  mlir::Operation *getUpdate(mlir::BlockArgument parameter) const { return updates.lookup(parameter); }

private:
  void findPhases(Program &program);

  std::vector<Step> steps;
  DimensionClasses classes;
  llvm::DenseSet<mlir::Operation *> forward, update;
  llvm::DenseMap<mlir::Value, mlir::BlockArgument> gradients;
  llvm::DenseMap<mlir::BlockArgument, mlir::Operation *> updates;
};

/// What sums up the copies that a value is made of, or null.
SumCopiesOp getSumOfCopies(mlir::Value value);

/// Whether the computation reads a parameter only rounded, and the update as it is: what is stored is its master copy.
bool isMaster(mlir::BlockArgument weight);

/// The parameter that a value is nothing but another form of (a transpose, a reshape, a conversion), or null.
mlir::BlockArgument getWeightBehind(mlir::Value value, mlir::func::FuncOp function);

} // namespace nd

#endif // ND_LIB_SHARDING_ANALYSIS_H
