//===- StatePlan.h - The state of every value of a program ------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Settles, from the axes that propagation decided for every operation, what its operands have to be, and which values
// are partial sums where.
//
// A value is either left as its operation produces it, or reduced right behind it: then every use takes the reduced
// one. It is reduced when any use needs it so. That depends on the other operands (the sum of a partial and a whole
// tensor needs both whole), which depend on what is reduced; so the states are recomputed until nothing is added to
// what is reduced. That only grows, which ends this. Behind the reduction it is sharded as the gradient's parameter is
// stored, or as most of its shards are used: to scatter and gather again costs what an all-reduce costs. A value that
// is partial over several axes is reduced over those that a use cannot carry on; the others wait.
//
//===----------------------------------------------------------------------===//

#ifndef ND_LIB_SHARDING_RESHARD_STATEPLAN_H
#define ND_LIB_SHARDING_RESHARD_STATEPLAN_H

#include "MeshView.h"
#include "Reshard/PartialSums.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

namespace nd {

class StatePlan {
public:
  struct Step {
    mlir::Operation *op;
    ShardingRule rule;
    FactorAxes axes;
    llvm::SmallVector<llvm::SmallVector<AxisList>> operandDims; ///< what each operand has to be sharded by
    /// For an arith.mulf of a partial sum by a number everywhere: the partial operand. It becomes nd.scale.
    std::optional<unsigned> scaled;
    /// For a sum: axes over which each operand becomes a part of a sum, as the other one is.
    llvm::SmallVector<AxisList, 2> partialOver;
    /// For an nd.accumulate or nd.sum_copies of a gradient whose parameter is stored in shards: what each microbatch,
    /// or each holder of a copy, adds to the sum. It may be partial still over other axes, which are reduced once,
    /// behind.
    std::optional<TensorSharding> added;
  };

  StatePlan(Program &program) : program(program), mesh(program.mesh) {}

  /// Reads `nd.sharding` of arguments and `nd.factor_axes` of operations.
  llvm::LogicalResult run();

  llvm::ArrayRef<Step> getSteps() const { return steps; }
  const MeshView &getMesh() const { return mesh; }
  /// As the operation produces it.
  const TensorSharding &getState(mlir::Value value) const { return states.find(value)->second; }
  bool isReducedAtDefinition(mlir::Value value) const { return reducedAxes.contains(value); }
  /// As uses find it.
  TensorSharding getUsedState(mlir::Value value) const;

private:
  llvm::LogicalResult readArguments();
  llvm::LogicalResult readSteps();
  void findAccumulatedShards();
  void computeStates();
  void chooseReducedStates();
  /// As uses find it, but for the dimensions: these are settled in the end.
  TensorSharding getVisibleState(mlir::Value value) const;
  void visit(Step &step);
  llvm::SmallVector<unsigned, 2> partialOperandsOf(mlir::Operation *op) const;
  /// Where an operation is linear in its partial operands, reduces them over those of their axes that it cannot carry.
  void reduceWhatIsNotCarried(const Step &step, const ShardingRule &rule);
  /// Whether an operation rounds a partial sum before anything reduces it over this axis.
  bool roundsPartialSum(mlir::Operation *op, unsigned axis) const;
  /// A sum of numbers of which some are partial: all of it is, and is reduced once in the end.
  bool visitSumOfNumbers(Step &step);
  /// A sum of a tensor that is partial over some axes and one that is over more: so is the former then.
  bool visitSumOverMoreAxes(Step &step);
  void reduce(mlir::Value value, llvm::ArrayRef<unsigned> axes);

  Program &program;
  MeshView mesh;
  std::vector<Step> steps;
  llvm::DenseMap<mlir::Value, TensorSharding> states, reducedStates;
  llvm::DenseMap<mlir::Value, AxisList> reducedAxes; ///< of values that are reduced at their definition
  llvm::DenseSet<mlir::Operation *> sumsOverShards;
  llvm::DenseMap<mlir::Operation *, AxisList> termsOfSums;
  /// How the optimizer reads a sum over microbatches.
  llvm::DenseMap<mlir::Value, llvm::SmallVector<AxisList>> accumulatedShards;
  bool changed = false;
};

} // namespace nd

#endif // ND_LIB_SHARDING_RESHARD_STATEPLAN_H
