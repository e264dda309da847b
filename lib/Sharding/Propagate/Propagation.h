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
//     shards of the sequence over the tensor axes too (`nd.plan` says whether: sequence_parallel). The products that
//     make keys and values of one head for the query heads of all ranks need all tokens too, though no axis shards
//     them;
//   - operations behind the gradients run on the shards in which the optimizer's state is stored, and conversions of
//     parameters on those of the parameters.
//
//===----------------------------------------------------------------------===//

#ifndef ND_LIB_SHARDING_PROPAGATE_PROPAGATION_H
#define ND_LIB_SHARDING_PROPAGATE_PROPAGATION_H

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
  /// Whether an operation makes keys or values that all ranks of the tensor axes use whole.
  bool makesWholeKeys(mlir::Operation *op) const { return wholeKeys.contains(op); }
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
  void findTensorParallel();
  /// Products that make keys and values which all ranks of the tensor axes use whole, of what is gathered for other
  /// products in any case, and what is between them and attention.
  void findWholeKeys();
  /// Which operations run on shards of the sequence over the tensor axes.
  void findSequenceParallelRegion();
  /// Results that are partial sums over the tensor axes where an operation runs on these axes.
  llvm::SmallVector<mlir::Value> partialResultsOf(const Analysis::Step &step, const FactorAxes &axes) const;
  bool isStorageOperation(const Analysis::Step &step) const;

  Program &program;
  const Analysis &analysis;
  const DimensionClasses &classes;
  MeshView mesh;
  AxisList tensorAxes;
  llvm::DenseMap<Id, Claim> claims;
  llvm::DenseSet<Id> sequence;
  /// Operations that the tensor axes shard by the dimensions of parameters, with results that are partial then.
  llvm::DenseMap<mlir::Operation *, llvm::SmallVector<mlir::Value>> tensorParallel;
  llvm::DenseSet<mlir::Operation *> region, wholeKeys;
  llvm::DenseMap<mlir::Value, TensorSharding> stored; ///< of arguments, gradients, and what follows from them
  llvm::DenseMap<mlir::Operation *, FactorAxes> decided;
};

} // namespace nd

#endif // ND_LIB_SHARDING_PROPAGATE_PROPAGATION_H
