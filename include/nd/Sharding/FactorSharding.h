//===- FactorSharding.h - Axes of tensors and axes of factors ---*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Plain algorithms on one operation: how the shardings of its tensors determine axes for the factors of its rule, and
// back.
//
// A dimension is a product of factors, major to minor, and its axes are listed major to minor too. Axes are dealt to
// the factors in that order: a minor factor gets axes only when the factors before it are sharded to their full extent,
// since a shard of a dimension is one contiguous part of it.
//
//   dimension 24 = i0*i1, i0=4, i1=6; axes of sizes 2, 2, 3   ->  i0: 2, 2    i1: 3
//   the same with axes of sizes 2, 3                          ->  i0: 2       the axis of size 3 belongs to no factor
//
//===----------------------------------------------------------------------===//

#ifndef ND_SHARDING_FACTORSHARDING_H
#define ND_SHARDING_FACTORSHARDING_H

#include "nd/Dialect/ND/IR/ND.h"

namespace nd {

/// Axes of a mesh, by position in it (outer to inner).
using AxisList = llvm::SmallVector<unsigned, 2>;
/// Sizes of a mesh's axes.
using MeshSizes = llvm::ArrayRef<int64_t>;
/// Axes of each factor of a rule. An axis belongs to one factor at most.
using FactorAxes = llvm::SmallVector<AxisList>;

/// The plain form of ShardingAttr. Unreduced axes are in ascending order.
struct TensorSharding {
  llvm::SmallVector<AxisList> dims;
  AxisList unreduced;
  ReductionKind kind{}; ///< of the unreduced axes; ReductionKind::sum when there are none

  bool operator==(const TensorSharding &other) const {
    return dims == other.dims && unreduced == other.unreduced && kind == other.kind;
  }
  bool operator!=(const TensorSharding &other) const { return !(*this == other); }
  /// Whether any dimension is sharded over the axis.
  bool shards(unsigned axis) const;
  /// The same without unreduced axes.
  TensorSharding reduced() const { return {dims, {}, ReductionKind::sum}; }

  static TensorSharding replicated(int64_t rank) { return {llvm::SmallVector<AxisList>(rank), {}, ReductionKind::sum}; }
};

/// Parts that a list of axes makes.
int64_t numShards(MeshSizes mesh, llvm::ArrayRef<unsigned> axes);

/// One operand or result of an operation, as these algorithms see it.
struct ShardedTensor {
  const ShardingRule::TensorFactors *factors;
  const TensorSharding *sharding;
  int64_t elements; ///< of the global tensor: the larger tensor decides conflicts
};

/// Deals the axes of one dimension to its factors (one list per factor of the dimension). Returns how many found a
/// factor; axes from there on belong to none.
unsigned dealAxes(MeshSizes mesh, const ShardingRule &rule, llvm::ArrayRef<int64_t> dimFactors,
                  llvm::ArrayRef<unsigned> axes, llvm::SmallVectorImpl<AxisList> &result);

/// The axes on which the operation runs: for each factor, the axes that its tensors propose, larger tensors first,
/// longer lists that continue shorter ones preferred. Guarantees: factors that need replication have none, an axis is
/// used once, sizes divide, and every tensor can express the result (`shardingFor`).
FactorAxes chooseFactorAxes(MeshSizes mesh, const ShardingRule &rule, llvm::ArrayRef<ShardedTensor> tensors);

/// The dimensions' axes of a tensor when the factors have these axes.
llvm::SmallVector<AxisList> dimsFor(llvm::ArrayRef<AxisList> factorAxes, const ShardingRule::TensorFactors &tensor);

/// Clears factors that some tensor cannot express: those minor to one that is not sharded to its full extent. Clearing
/// one can make others inexpressible, so this repeats until nothing changes.
void dropInexpressible(MeshSizes mesh, const ShardingRule &rule,
                       llvm::ArrayRef<const ShardingRule::TensorFactors *> tensors, FactorAxes &chosen);

/// What unreduced operands mean for the results of an operation that runs on these axes.
struct UnreducedTransfer {
  /// Operands that have to be reduced first. When there are any, the rest says nothing.
  llvm::SmallVector<unsigned> mustReduce;
  /// The results would be partial, but something that is added to them is whole.
  bool addendIsWhole = false;
  /// Axes over which every result is unreduced.
  AxisList unreduced;
  ReductionKind kind{};
  /// Per result, further axes over which it alone is a partial sum (ShardingRule::summed); empty when there are none.
  llvm::SmallVector<AxisList> summed;

  /// All axes over which the result is unreduced, in ascending order.
  AxisList unreducedOf(unsigned result) const;
};
UnreducedTransfer transferUnreduced(const ShardingRule &rule, llvm::ArrayRef<AxisList> factorAxes,
                                    llvm::ArrayRef<const TensorSharding *> operands);

} // namespace nd

#endif // ND_SHARDING_FACTORSHARDING_H
