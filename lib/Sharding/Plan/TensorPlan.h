//===- TensorPlan.h - What tensor parallelism shards ------------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Chooses, from the structure of the graph alone, which classes of dimensions the tensor axes shard:
//
//   - the vocabulary: the classes of the logits, and rows of tables as long as that;
//   - the heads of every attention;
//   - everything else that one product makes and another contracts (the width of an MLP, heads of an attention that is
//     written out), so that a pair of products needs one reduction. Classes are taken in the order of the elements of
//     weights that they cover, then of the elements that would be reduced.
//
// Invariants: a weight is sharded over the tensor axes in one dimension; classes that some operation needs as a whole
// are not taken.
//
//===----------------------------------------------------------------------===//

#ifndef ND_LIB_SHARDING_PLAN_TENSORPLAN_H
#define ND_LIB_SHARDING_PLAN_TENSORPLAN_H

#include "Analysis.h"

namespace nd {

class TensorPlan {
public:
  using Id = DimensionClasses::Id;

  /// `logits` are the values whose last dimension is the vocabulary.
  TensorPlan(Program &program, const Analysis &analysis, llvm::ArrayRef<mlir::Value> logits);

  /// Whether the tensor axes shard this class, and how many parts of the axes before it: kv heads get the major part of
  /// the tensor axis when they are fewer, and the query heads of a group the rest.
  struct Choice {
    int64_t majorParts = 1; ///< parts of the tensor axes that a more major class takes
    int64_t parts;          ///< parts of the tensor axes that this class takes; 0: all
  };
  /// Classes and what they get of tensor axes of `size` ranks.
  void run(int64_t size);
  const llvm::DenseMap<Id, Choice> &getChoices() const { return choices; }

private:
  struct Use {
    int64_t covered = 0; ///< elements of the weights that have the class
    int64_t reduced = 0; ///< elements of results that its contractions leave partial
    bool made = false;   ///< a free dimension of a product with a weight
    bool contracted = false;
    bool blocked = false; ///< some operation needs it whole, or a weight has it twice
    unsigned order = 0;
  };

  void readWeights();
  void readOperations();
  void takeVocabulary();
  void takeHeads(AttentionOp attention, int64_t size);
  void takePairs();
  bool take(Id id, Choice choice);

  Program &program;
  const Analysis &analysis;
  const DimensionClasses &classes;
  llvm::SmallVector<mlir::Value> logits;
  llvm::DenseMap<Id, Use> uses;
  llvm::DenseMap<Id, llvm::SmallVector<mlir::BlockArgument, 4>> weightsOf;
  llvm::DenseSet<mlir::Value> takenWeights;
  llvm::DenseMap<Id, Choice> choices;
};

} // namespace nd

#endif // ND_LIB_SHARDING_PLAN_TENSORPLAN_H
