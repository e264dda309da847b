//===- ReshardPlan.cpp - Collectives that change a sharding ---------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "ReshardPlan.h"

using namespace mlir;
using namespace nd;

std::optional<SmallVector<ReshardStep>> nd::planReshard(const MeshView &mesh, const TensorSharding &from,
                                                        const TensorSharding &to, std::string &why) {
  SmallVector<ReshardStep> steps;
  TensorSharding state = from;
  auto add = [&](ReshardStep::Kind kind, AxisList axes, int64_t dim) {
    steps.push_back({kind, std::move(axes), dim, from.kind, state});
  };

  for (int64_t dim : llvm::seq<int64_t>(state.dims.size())) {
    AxisList &axes = state.dims[dim];
    auto common = std::mismatch(axes.begin(), axes.end(), to.dims[dim].begin(), to.dims[dim].end()).first;
    AxisList gathered(common, axes.end());
    if (gathered.empty())
      continue;
    axes.erase(common, axes.end());
    add(ReshardStep::Kind::AllGather, gathered, dim);
  }
  for (int64_t dim : llvm::seq<int64_t>(state.dims.size())) {
    AxisList scattered(ArrayRef<unsigned>(to.dims[dim]).drop_front(state.dims[dim].size()));
    if (scattered.empty())
      continue;
    for (unsigned axis : scattered) {
      unsigned *it = llvm::find(state.unreduced, axis);
      if (it == state.unreduced.end()) {
        why = "dimension " + std::to_string(dim) + " of a tensor that is replicated over " + mesh.str({axis}) +
              " is needed sharded over it, and cutting a shard out of a whole tensor is built in the next release"
              "; in the model, keep the sharded dimension the major one where dimensions are merged (batch first), or "
              "use "
              "one rank";
        return std::nullopt;
      }
      state.unreduced.erase(it);
      state.dims[dim].push_back(axis);
    }
    add(ReshardStep::Kind::ReduceScatter, scattered, dim);
  }
  AxisList reduced;
  for (unsigned axis : state.unreduced)
    if (!llvm::is_contained(to.unreduced, axis))
      reduced.push_back(axis);
  if (!reduced.empty()) {
    state.unreduced = to.unreduced;
    if (state.unreduced.empty())
      state.kind = ReductionKind::sum;
    add(ReshardStep::Kind::AllReduce, reduced, 0);
  }
  return steps;
}
