//===- LocalVerifier.h - States of a rank's program, followed ---*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// After partitioning, types are local and say nothing of a value's state, so it is followed from the arguments to the
// results, for each axis of the mesh alone:
//
//   Same      the ranks along the axis hold equal tensors
//   Shard     they hold parts of one tensor, along one of the dimensions in `dims`: each its own, or after permutes
//   that of
//             the rank `shift` places before it
//   Partial   the tensor is the combination of what they hold
//   Unknown   one of these; it satisfies everything
//
// Shards of kv heads that ranks share irregularly (`nd.copies`, KeyHeadCopies.h) are *copies*, equal wherever the table
// says that they are one head, or *parts*, whose sum over the holders of a head is what the head has
// (LocalVerifierCopies.cpp).
//
// `dims` is a set since a reshape [S] -> [1, S] of a shard does not tell which of the two is sharded. Other operations
// narrow it: a possibility that an operation forbids is dropped, and the last one that goes is an error.
//
// This shares the operations' rules with the passes before it, and nothing else: it knows no global shapes and plans
// nothing.
//
//===----------------------------------------------------------------------===//

#ifndef ND_LIB_SHARDING_VERIFY_LOCALVERIFIER_H
#define ND_LIB_SHARDING_VERIFY_LOCALVERIFIER_H

#include "MeshView.h"
#include "Verify/RuleCache.h"
#include "Verify/Uniform.h"
#include "nd/Dialect/ND/IR/Copies.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SmallBitVector.h"

namespace nd {

/// A set of dimensions with one element.
inline llvm::SmallBitVector onlyDim(int64_t rank, int64_t dim) {
  llvm::SmallBitVector dims(rank);
  dims.set(dim);
  return dims;
}

class LocalVerifier {
public:
  LocalVerifier(Program &program) : program(program), mesh(program.mesh) {}
  llvm::LogicalResult run();

private:
  struct State {
    enum class Kind { Same, Shard, Partial, Unknown };
    Kind kind = Kind::Same;
    llvm::SmallBitVector dims; ///< of Shard
    ReductionKind reduction{}; ///< of Partial
    int64_t shift = 0;         ///< of Shard
    enum class Copies { None, Equal, Parts };
    Copies copies = Copies::None; ///< of Shard
    unsigned table = 0;           ///< of copies and parts
    std::string str() const;
  };

  llvm::LogicalResult verifyInstance(mlir::Operation *op);
  llvm::LogicalResult verifyPermutation(PermuteOp op);
  mlir::FailureOr<State> throughCollective(mlir::Operation *op, unsigned index, const State &state, unsigned axis);
  State throughPermute(PermuteOp op, const State &state, unsigned axis);
  llvm::LogicalResult runAlong(unsigned axis);
  /// The sharding of an argument or result, after checks that the local type is a shard of the logical shape.
  mlir::FailureOr<TensorSharding> readBoundary(ShardingAttr attr, mlir::DenseI64ArrayAttr global,
                                               mlir::RankedTensorType local, mlir::DictionaryAttr attributes,
                                               const std::string &tensor);
  llvm::LogicalResult readBoundaries();
  llvm::LogicalResult readArguments(unsigned axis);
  llvm::LogicalResult verifyResults(unsigned axis);
  mlir::FailureOr<bool> visitShardMaker(mlir::Operation *op, unsigned axis);
  mlir::FailureOr<bool> visitAttention(mlir::Operation *op, unsigned axis);
  template <typename AttentionLike> mlir::FailureOr<bool> visitAttention(AttentionLike op, unsigned axis);
  llvm::LogicalResult verifyRings();
  llvm::LogicalResult verifyOrder();
  llvm::LogicalResult visit(mlir::Operation *op, unsigned axis);
  llvm::LogicalResult visitCollective(mlir::Operation *op, unsigned axis);
  mlir::FailureOr<State> throughPartial(mlir::Operation *op, const ShardingRule &rule, llvm::ArrayRef<unsigned> partial,
                                        unsigned axis);
  llvm::LogicalResult throughShards(mlir::Operation *op, const ShardingRule &rule, unsigned axis);
  llvm::LogicalResult verifyAddends(mlir::Operation *op, const ShardingRule &rule, unsigned axis);
  void throughReshape(ReshapeOp op);

  // Copies.
  mlir::FailureOr<unsigned> readTable(mlir::DictionaryAttr copies, const std::string &tensor);
  /// Marks the shards of an argument that are copies.
  llvm::LogicalResult readCopies(mlir::DictionaryAttr attributes, unsigned axis,
                                 llvm::function_ref<std::string()> tensor, State &state);
  llvm::LogicalResult verifyCopies(mlir::DictionaryAttr attributes, unsigned axis,
                                   llvm::function_ref<std::string()> tensor, const State &state);
  /// What results are when operands, which are sharded as results are, are copies.
  llvm::LogicalResult throughCopies(mlir::Operation *op, const ShardingRule &rule, unsigned axis);
  llvm::LogicalResult visitSum(SumCopiesOp op, unsigned axis);
  llvm::LogicalResult visitMake(MakeCopiesOp op, unsigned axis);
  llvm::LogicalResult verifyGroups(SumCopiesOp op, unsigned table);
  mlir::InFlightDiagnostic error(mlir::Operation *op, unsigned axis);

  Program &program;
  MeshView mesh;
  Uniform uniform;
  RuleCache rules;
  std::vector<TensorSharding> arguments, results; ///< of the function, along all axes
  llvm::DenseMap<mlir::Value, State> states;      ///< along the axis that is being followed
  llvm::DenseMap<int64_t, mlir::Operation *> instances;
  /// Of each table, the head (as many elements as lie together) at each place of each rank along the tensor axes.
  std::vector<llvm::SmallVector<llvm::SmallVector<int64_t>>> tables;
  llvm::DenseMap<mlir::Operation *, unsigned> tableOfSum;
  llvm::DenseSet<std::tuple<mlir::Attribute, int64_t, int64_t, unsigned>> verifiedGroups;
};

} // namespace nd

#endif // ND_LIB_SHARDING_VERIFY_LOCALVERIFIER_H
