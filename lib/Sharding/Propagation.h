//===- Propagation.h - The axes on which each operation runs ----*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Annotations say how inputs are sharded and how the computation uses parameters. They give axes to the classes of
// dimensions (DimensionClasses), and these to the factors of every operation that computes. In short:
//
//   - an axis belongs to one factor of an operation; where two classes claim it, tensor axes go to the dimension of a
//     parameter before they go to the sequence, else the class that was annotated on the larger tensor wins;
//   - between tensor-parallel products, from a partial sum to the product that needs all tokens, operations run on
//     shards of the sequence over the tensor axes too (`nd.plan` says whether: sequence_parallel);
//   - operations behind the gradients run on the shards in which the optimizer's state is stored, and conversions of
//     parameters on those of the parameters.
//
//===----------------------------------------------------------------------===//

#ifndef ND_LIB_SHARDING_PROPAGATION_H
#define ND_LIB_SHARDING_PROPAGATION_H

#include "Analysis.h"
#include "MeshView.h"

namespace nd {

class Propagation {
public:
  Propagation(Program &program, const Analysis &analysis)
      : program(program), analysis(analysis), classes(analysis.getClasses()), mesh(program.mesh) {}

  /// Fails with an error for an annotation that does not fit.
  llvm::LogicalResult run();

  /// Axes of the factors of an operation's rule.
  const FactorAxes &get(mlir::Operation *op) const { return decided.find(op)->second; }
  const MeshView &getMesh() const { return mesh; }

private:
  using Id = DimensionClasses::Id;
  struct Claim {
    AxisList axes;
    int64_t elements;
  };

  llvm::LogicalResult readAnnotations();
  void claim(mlir::Value value, const TensorSharding &sharding);
  bool isSequence(mlir::Operation *op, unsigned factor) const;
  /// Axes by class, for one factor; `withTensorAxes`: the sequence is sharded over the tensor axes too.
  AxisList axesOf(mlir::Operation *op, unsigned factor, bool withTensorAxes) const;
  FactorAxes decideByClasses(const Analysis::Step &step, bool withTensorAxes) const;
  /// Attention on all tokens of fewer heads: what shards the sequence shards the heads instead.
  void exchangeHeads(const Analysis::Step &step, FactorAxes &axes) const;
  FactorAxes decideByOperands(const Analysis::Step &step) const;
  bool usesTensorAxes(const FactorAxes &axes) const;
  /// Which operations run on shards of the sequence over the tensor axes.
  void findSequenceParallelRegion();
  bool isStorageOperation(const Analysis::Step &step) const;

  Program &program;
  const Analysis &analysis;
  const DimensionClasses &classes;
  MeshView mesh;
  AxisList tensorAxes;
  llvm::DenseMap<Id, Claim> claims;
  llvm::DenseSet<Id> sequence;
  llvm::DenseSet<mlir::Operation *> region;
  llvm::DenseMap<mlir::Value, TensorSharding> stored; ///< of arguments, gradients, and what follows from them
  llvm::DenseMap<mlir::Operation *, FactorAxes> decided;
};

} // namespace nd

#endif // ND_LIB_SHARDING_PROPAGATION_H
