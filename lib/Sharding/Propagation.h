//===- Propagation.h - Shardings along the factors of a program -*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_LIB_SHARDING_PROPAGATION_H
#define ND_LIB_SHARDING_PROPAGATION_H

#include "MeshView.h"
#include "Program.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

namespace nd {

/// Decides the dimensions' axes of every value, from those of annotated arguments and results. Forward and backward
/// sweeps over the operations alternate until neither changes anything; since lists of axes only grow, that ends. The
/// result does not depend on anything but the program's order.
class Propagation {
public:
  Propagation(Program &program) : program(program), mesh(program.mesh) {}

  /// Fails with an error for an operation without a rule or an annotation that does not fit.
  llvm::LogicalResult run();

  const TensorSharding &get(mlir::Value value) const { return shardings.find(value)->second; }
  const MeshView &getMesh() const { return mesh; }

private:
  struct Step {
    mlir::Operation *op;
    ShardingRule rule;
  };

  llvm::LogicalResult seedArguments();
  llvm::LogicalResult seedResults();
  llvm::LogicalResult collectSteps();
  bool visit(const Step &step);
  bool grow(mlir::Value value, llvm::ArrayRef<AxisList> wanted);

  Program &program;
  MeshView mesh;
  std::vector<Step> steps;
  llvm::DenseMap<mlir::Value, TensorSharding> shardings;
  llvm::DenseSet<mlir::Value> fixed; ///< annotated arguments
};

} // namespace nd

#endif // ND_LIB_SHARDING_PROPAGATION_H
