//===- StatePlan.h - The state of every value of a program ------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Settles, from the shardings that propagation decided, on which axes each operation runs, what its operands have to
// be, and which values are partial sums where.
//
// A value is either left as its operation produces it, or reduced right behind it: then every use takes the reduced
// one. It is reduced when any use needs it so. That depends on the other operands (the sum of a partial and a whole
// tensor needs both whole), which depend on what is reduced; so the states are recomputed until no value is added to
// those that are reduced. The set only grows, which ends this.
//
//===----------------------------------------------------------------------===//

#ifndef ND_LIB_SHARDING_STATEPLAN_H
#define ND_LIB_SHARDING_STATEPLAN_H

#include "MeshView.h"
#include "Program.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

namespace nd {

class StatePlan {
public:
  struct Step {
    mlir::Operation *op;
    ShardingRule rule;
    llvm::SmallVector<llvm::SmallVector<AxisList>> operandDims; ///< what each operand has to be sharded by
    /// For an arith.mulf of a partial sum by a number everywhere: the partial operand. It becomes nd.scale.
    std::optional<unsigned> scaled;
  };

  StatePlan(Program &program) : program(program), mesh(program.mesh) {}

  /// Reads `nd.sharding` of arguments and `nd.shardings` of operations.
  llvm::LogicalResult run();

  llvm::ArrayRef<Step> getSteps() const { return steps; }
  const MeshView &getMesh() const { return mesh; }
  /// As the operation produces it.
  const TensorSharding &getState(mlir::Value value) const { return states.find(value)->second; }
  bool isReducedAtDefinition(mlir::Value value) const { return reducedAtDefinition.contains(value); }
  /// As uses find it.
  TensorSharding getUsedState(mlir::Value value) const {
    return isReducedAtDefinition(value) ? getState(value).reduced() : getState(value);
  }

private:
  llvm::LogicalResult readArguments();
  llvm::LogicalResult readSteps();
  void computeStates();
  void visit(Step &step);
  void reduce(mlir::Value value) { changed |= reducedAtDefinition.insert(value).second; }

  Program &program;
  MeshView mesh;
  std::vector<Step> steps;
  llvm::DenseMap<mlir::Value, TensorSharding> decided, states;
  llvm::DenseSet<mlir::Value> reducedAtDefinition;
  bool changed = false;
};

/// The 0-d factor of a product of a tensor by a number everywhere, at the builder's insertion point; null where operand
/// 1 - `tensor` is no such number.
mlir::Value buildScaleFactor(mlir::OpBuilder &builder, mlir::Operation *product, unsigned tensor);
/// Whether there is one.
bool hasScaleFactor(mlir::Operation *product, unsigned tensor);

} // namespace nd

#endif // ND_LIB_SHARDING_STATEPLAN_H
