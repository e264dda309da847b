//===- ReshardPlan.h - Collectives that change a sharding -------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_LIB_SHARDING_RESHARDPLAN_H
#define ND_LIB_SHARDING_RESHARDPLAN_H

#include "MeshView.h"

namespace nd {

/// One collective on the way from one sharding to another; `dim` is that of gathers and scatters.
struct ReshardStep {
  enum class Kind { AllReduce, AllGather, ReduceScatter };
  Kind kind;
  AxisList axes;
  int64_t dim = 0;
  ReductionKind reduction = ReductionKind::sum;
  TensorSharding after; ///< the tensor's sharding when the step is done
};

/// The collectives from one sharding to another: dimensions are gathered down to what both have in common, unreduced
/// axes that the target shards by are reduce-scattered, the other reduced ones are all-reduced. What would need a rank
/// to cut its part out of a tensor that it holds whole is refused: nothing is returned, and `why` says it.
std::optional<llvm::SmallVector<ReshardStep>> planReshard(const MeshView &mesh, const TensorSharding &from,
                                                          const TensorSharding &to, std::string &why);

} // namespace nd

#endif // ND_LIB_SHARDING_RESHARDPLAN_H
