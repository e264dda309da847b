//===- ReshardPlan.h - Collectives that change a sharding -------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The cheapest sequence of collectives from one sharding of a tensor to another. States are shardings; steps are
//
//   all_slice       replicated axes become minor axes of a dimension          sends nothing
//   permute         the shards of every dimension stay as many, ranks swap    one shard for each rank that gets another
//   all_to_all      minor axes of a dimension become minor axes of another    (n-1)/n of a shard
//   all_gather      minor axes of a dimension become replicated               n-1 shards
//   reduce_scatter  unreduced axes become minor axes of a dimension           n-1 shards of the result
//   all_reduce      unreduced axes become replicated                          2(n-1)/n of a shard
//
// Steps use the axes that one of the two shardings uses, no others. A plan sends the fewest bytes, then has the fewest
// collectives. Nothing is gathered whole, unless that is the cheapest.
//
// Where a list of axes does not divide its dimension, each axis in turn cuts blocks of the rounded-up size, and a
// rank's shard is what of its block exists; payloads count whole blocks.
//
//===----------------------------------------------------------------------===//

#ifndef ND_LIB_SHARDING_RESHARD_RESHARDPLAN_H
#define ND_LIB_SHARDING_RESHARD_RESHARDPLAN_H

#include "nd/Sharding/FactorSharding.h"
#include <map>

namespace nd {

struct ReshardStep {
  enum class Kind { AllSlice, Permute, AllToAll, AllGather, ReduceScatter, AllReduce };
  Kind kind;
  AxisList axes;                         ///< the group, major to minor
  int64_t dim = 0;                       ///< that is cut or joined; of an all-to-all the one that is cut
  int64_t concatDim = 0;                 ///< of an all-to-all: the one that is joined
  llvm::SmallVector<int64_t, 0> sources; ///< of a permute: position i receives from sources[i]
  ReductionKind reduction = ReductionKind::sum;
  TensorSharding before, after;
};

using ReshardSteps = llvm::SmallVector<ReshardStep, 0>;

/// Elements that all ranks of the mesh send in one step, together.
int64_t sentElements(MeshSizes mesh, llvm::ArrayRef<int64_t> shape, const ReshardStep &step);

/// What plans may do with a dimension on the way: cut it where that leaves no shard shorter than others, or anywhere.
enum class Cuts { Even, Any };

/// Plans for one mesh, remembered.
class ReshardPlanner {
public:
  explicit ReshardPlanner(MeshSizes mesh, Cuts cuts = Cuts::Any) : mesh(mesh), cuts(cuts) {}

  /// `to` is unreduced over axes that `from` is unreduced over, and by the same kind: nd.reshard checks that.
  const ReshardSteps &plan(llvm::ArrayRef<int64_t> shape, const TensorSharding &from, const TensorSharding &to);

private:
  MeshSizes mesh;
  Cuts cuts;
  std::map<std::vector<int64_t>, ReshardSteps> plans;
};

} // namespace nd

#endif // ND_LIB_SHARDING_RESHARD_RESHARDPLAN_H
