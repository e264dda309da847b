//===- ReshardPlan.cpp - Collectives that change a sharding ---------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// A uniform-cost search over shardings. Axes that a dimension has in front in both shardings stay where they are.
//
//===----------------------------------------------------------------------===//

#include "Reshard/ReshardPlan.h"
#include "llvm/ADT/SmallBitVector.h"
#include <deque>
#include <queue>

using namespace nd;
using llvm::ArrayRef;
using llvm::SmallVector;

namespace {

using Kind = ReshardStep::Kind;

/// Elements of a shard, with rounded-up blocks.
int64_t shardElements(MeshSizes mesh, ArrayRef<int64_t> shape, ArrayRef<AxisList> dims) {
  int64_t elements = 1;
  for (auto [size, axes] : llvm::zip_equal(shape, dims)) {
    int64_t block = size;
    for (unsigned axis : axes)
      block = llvm::divideCeil(block, mesh[axis]);
    elements *= block;
  }
  return elements;
}

/// Axes without those that both lists have in front, and then at the end: those place a shard within a block alike.
std::pair<ArrayRef<unsigned>, ArrayRef<unsigned>> differing(ArrayRef<unsigned> a, ArrayRef<unsigned> b) {
  while (!a.empty() && !b.empty() && a.front() == b.front())
    a = a.drop_front(), b = b.drop_front();
  while (!a.empty() && !b.empty() && a.back() == b.back())
    a = a.drop_back(), b = b.drop_back();
  return {a, b};
}

/// The elements [first, end) of every shard of a dimension that axes cut; all empty shards are [size, size).
std::vector<std::pair<int64_t, int64_t>> shardsOf(MeshSizes mesh, int64_t size, ArrayRef<unsigned> axes) {
  std::vector<std::pair<int64_t, int64_t>> shards{{0, size}};
  int64_t block = size;
  for (unsigned axis : axes) {
    block = llvm::divideCeil(block, mesh[axis]);
    std::vector<std::pair<int64_t, int64_t>> cut;
    for (auto [first, end] : shards)
      for (int64_t i = 0; i < mesh[axis]; ++i)
        cut.emplace_back(first + i * block, std::min(end, first + (i + 1) * block));
    shards = std::move(cut);
  }
  for (auto &shard : shards)
    if (shard.first >= shard.second)
      shard = {size, size};
  return shards;
}

/// The shards that the positions of a group hold before and after a permute.
class Permutation {
public:
  Permutation(MeshSizes mesh, ArrayRef<int64_t> shape, ArrayRef<AxisList> before, ArrayRef<AxisList> after) {
    struct Dim {
      ArrayRef<unsigned> before, after;
      int64_t numbers; ///< of its shards: their index, or where axes do not divide their first element
      std::vector<std::pair<int64_t, int64_t>> shardsBefore, shardsAfter;
    };
    llvm::SmallBitVector used(mesh.size());
    SmallVector<Dim> dims;
    for (auto [size, from, to] : llvm::zip_equal(shape, before, after)) {
      auto [first, second] = differing(from, to);
      if (first.empty())
        continue;
      if (size % numShards(mesh, from) == 0)
        dims.push_back({first, second, numShards(mesh, first), {}, {}});
      else
        dims.push_back({from, to, size + 1, shardsOf(mesh, size, from), shardsOf(mesh, size, to)});
      for (ArrayRef<unsigned> list : {dims.back().before, dims.back().after})
        for (unsigned axis : list)
          used.set(axis);
    }
    for (unsigned axis : used.set_bits())
      axes.push_back(axis);
    SmallVector<int64_t> coordinates(mesh.size());
    auto numberOf = [&](ArrayRef<unsigned> list, ArrayRef<std::pair<int64_t, int64_t>> shards) {
      int64_t index = 0;
      for (unsigned axis : list)
        index = index * mesh[axis] + coordinates[axis];
      return shards.empty() ? index : shards[index].first;
    };
    for (int64_t position : llvm::seq(numShards(mesh, axes))) {
      int64_t rest = position;
      for (unsigned axis : llvm::reverse(axes)) {
        coordinates[axis] = rest % mesh[axis];
        rest /= mesh[axis];
      }
      int64_t from = 0, to = 0;
      for (const Dim &dim : dims) {
        from = from * dim.numbers + numberOf(dim.before, dim.shardsBefore);
        to = to * dim.numbers + numberOf(dim.after, dim.shardsAfter);
      }
      held.push_back(from);
      needed.push_back(to);
    }
  }

  /// Positions that need another shard than the one they hold, of all positions.
  int64_t numMoved() const {
    int64_t moved = 0;
    for (auto [from, to] : llvm::zip_equal(held, needed))
      moved += from != to;
    return moved;
  }

  /// Whoever holds what it needs keeps it; the others' holders and needers of each shard are matched in order. As many
  /// ranks hold a shard as need it.
  SmallVector<int64_t, 0> getSources() const {
    std::map<int64_t, std::deque<int64_t>> free;
    for (auto [position, shard] : llvm::enumerate(held))
      if (needed[position] != shard)
        free[shard].push_back(position);
    SmallVector<int64_t, 0> sources;
    for (auto [position, shard] : llvm::enumerate(needed)) {
      if (held[position] == shard) {
        sources.push_back(position);
        continue;
      }
      sources.push_back(free[shard].front());
      free[shard].pop_front();
    }
    return sources;
  }

  AxisList axes;
  SmallVector<int64_t, 0> held, needed;
};

/// Compared in order.
struct Cost {
  int64_t elements = 0; ///< sent by all ranks
  int64_t collectives = 0;
  int64_t others = 0; ///< slices, and gathers: an all-reduce rather than a gather of what was scattered

  friend bool operator<(const Cost &a, const Cost &b) {
    return std::tie(a.elements, a.collectives, a.others) < std::tie(b.elements, b.collectives, b.others);
  }
};

std::vector<int64_t> encode(ArrayRef<AxisList> dims, ArrayRef<unsigned> unreduced) {
  std::vector<int64_t> code;
  for (const AxisList &axes : dims) {
    code.insert(code.end(), axes.begin(), axes.end());
    code.push_back(-1);
  }
  code.insert(code.end(), unreduced.begin(), unreduced.end());
  return code;
}

class Search {
public:
  Search(MeshSizes mesh, Cuts cuts, ArrayRef<int64_t> shape, const TensorSharding &from, const TensorSharding &to)
      : mesh(mesh), cuts(cuts), shape(shape), from(from), to(to), sliceable(mesh.size()), movable(mesh.size()) {
    for (auto [before, after] : llvm::zip_equal(from.dims, to.dims)) {
      size_t common = std::mismatch(before.begin(), before.end(), after.begin(), after.end()).first - before.begin();
      fixed.push_back(common);
      for (unsigned axis : ArrayRef<unsigned>(before).drop_front(common))
        movable.set(axis);
      for (unsigned axis : ArrayRef<unsigned>(after).drop_front(common)) {
        movable.set(axis);
        sliceable.set(axis);
      }
    }
    for (unsigned axis : from.unreduced)
      if (!llvm::is_contained(to.unreduced, axis))
        movable.set(axis);
    for (int64_t size : mesh)
      ranks *= size;
  }

  ReshardSteps run() {
    visit(from, {}, -1, {});
    std::vector<int64_t> goal = encode(to.dims, to.unreduced);
    while (!queue.empty()) {
      auto [cost, index] = queue.top();
      queue.pop();
      if (nodes[index].closed)
        continue;
      nodes[index].closed = true;
      if (encode(nodes[index].state.dims, nodes[index].state.unreduced) == goal)
        return pathTo(index);
      expand(index);
    }
    llvm_unreachable("everything can be gathered, reduced and cut");
  }

private:
  struct Node {
    TensorSharding state;
    Cost cost;
    int64_t parent;
    ReshardStep step;
    bool closed = false;
  };

  /// `step` leads from `parent` to `state`.
  void visit(const TensorSharding &state, Cost cost, int64_t parent, const ReshardStep &step) {
    auto [it, isNew] = known.try_emplace(encode(state.dims, state.unreduced), nodes.size());
    if (isNew)
      nodes.push_back({state, cost, parent, step});
    else if (nodes[it->second].closed || !(cost < nodes[it->second].cost))
      return;
    else
      nodes[it->second] = {state, cost, parent, step};
    queue.push({cost, it->second});
  }

  /// A permute of many ranks, of which nearly all get another shard: not worth to be counted exactly.
  bool isOfManyRanks(const ReshardStep &step) const { return step.kind == Kind::Permute && ranks > 256; }

  bool isEven(const TensorSharding &state) const {
    return llvm::all_of(llvm::zip_equal(state.dims, shape),
                        [&](const auto &dim) { return std::get<1>(dim) % numShards(mesh, std::get<0>(dim)) == 0; });
  }

  void take(int64_t parent, ReshardStep step) {
    if (cuts == Cuts::Even && !isEven(step.after))
      return;
    step.before = nodes[parent].state;
    step.reduction = step.before.kind;
    Cost cost = nodes[parent].cost;
    cost.elements +=
        isOfManyRanks(step) ? ranks * shardElements(mesh, shape, step.before.dims) : sentElements(mesh, shape, step);
    cost.collectives += step.kind != Kind::AllSlice;
    cost.others += step.kind == Kind::AllSlice || step.kind == Kind::AllGather;
    TensorSharding after = step.after;
    visit(after, cost, parent, step);
  }

  void expand(int64_t index) {
    const TensorSharding state = nodes[index].state;
    expandReductions(index, state);
    for (int64_t dim : llvm::seq<int64_t>(shape.size())) {
      for (unsigned axis : sliceable.set_bits())
        if (!state.shards(axis) && !llvm::is_contained(state.unreduced, axis)) {
          TensorSharding after = state;
          after.dims[dim].push_back(axis);
          take(index, {Kind::AllSlice, {axis}, dim, 0, {}, {}, {}, after});
        }
      for (size_t keep = fixed[dim]; keep < state.dims[dim].size(); ++keep) {
        AxisList axes(ArrayRef<unsigned>(state.dims[dim]).drop_front(keep));
        TensorSharding after = state;
        after.dims[dim].truncate(keep);
        take(index, {Kind::AllGather, axes, dim, 0, {}, {}, {}, after});
        for (int64_t other : llvm::seq<int64_t>(shape.size())) {
          if (other == dim)
            continue;
          TensorSharding moved = after;
          moved.dims[other].append(axes);
          take(index, {Kind::AllToAll, axes, other, dim, {}, {}, {}, moved});
        }
      }
    }
    TensorSharding permuted = state;
    for (auto [axes, count] : llvm::zip_equal(permuted.dims, fixed))
      axes.truncate(count);
    expandPermutes(index, state, permuted, 0);
  }

  /// Subsets of the axes to be reduced. Scattered ones are in any order, or of many axes in that in which the target
  /// has them, with the others behind.
  void expandReductions(int64_t index, const TensorSharding &state) {
    AxisList reducible;
    for (const AxisList &axes : to.dims)
      for (unsigned axis : axes)
        if (llvm::is_contained(state.unreduced, axis))
          reducible.push_back(axis);
    for (unsigned axis : state.unreduced)
      if (movable.test(axis) && !llvm::is_contained(reducible, axis))
        reducible.push_back(axis);
    for (unsigned subset = 1; subset < 1u << reducible.size(); ++subset) {
      AxisList axes;
      TensorSharding after = state;
      for (auto [position, axis] : llvm::enumerate(reducible))
        if (subset >> position & 1) {
          axes.push_back(axis);
          after.unreduced.erase(llvm::find(after.unreduced, axis));
        }
      if (after.unreduced.empty())
        after.kind = ReductionKind::sum;
      AxisList inTargetOrder = axes;
      llvm::sort(axes);
      take(index, {Kind::AllReduce, axes, 0, 0, {}, {}, {}, after});
      do
        for (int64_t dim : llvm::seq<int64_t>(shape.size())) {
          const AxisList &order = hasManyAxes() ? inTargetOrder : axes;
          TensorSharding scattered = after;
          scattered.dims[dim].append(order);
          take(index, {Kind::ReduceScatter, order, dim, 0, {}, {}, {}, scattered});
        }
      while (!hasManyAxes() && std::next_permutation(axes.begin(), axes.end()));
    }
  }

  /// All ways to cut each dimension into as many shards as now: `permuted` holds the axes chosen so far. Of many axes
  /// only those in which a dimension has the target's axes in front and others in the order of the mesh.
  void expandPermutes(int64_t index, const TensorSharding &state, TensorSharding &permuted, size_t dim) {
    if (dim == shape.size()) {
      if (permuted.dims != state.dims)
        take(index, {Kind::Permute, {}, 0, 0, {}, {}, {}, permuted});
      return;
    }
    int64_t missing = numShards(mesh, state.dims[dim]) / numShards(mesh, permuted.dims[dim]);
    if (missing == 1) {
      if (cutsAlike(dim, state.dims[dim], permuted.dims[dim]))
        expandPermutes(index, state, permuted, dim + 1);
      return;
    }
    for (unsigned axis : movable.set_bits()) {
      if (hasManyAxes() && !continuesWell(permuted.dims[dim], to.dims[dim], axis))
        continue;
      if (missing % mesh[axis] != 0 || permuted.shards(axis) || llvm::is_contained(state.unreduced, axis))
        continue;
      permuted.dims[dim].push_back(axis);
      expandPermutes(index, state, permuted, dim);
      permuted.dims[dim].pop_back();
    }
  }

  /// Beyond this many axes whose use changes, a search through all orders of axes takes too long.
  bool hasManyAxes() const { return movable.count() > 3; }

  static bool continuesWell(ArrayRef<unsigned> axes, ArrayRef<unsigned> target, unsigned next) {
    bool isTargets = axes.size() <= target.size() && target.take_front(axes.size()) == axes;
    return isTargets || axes.back() < next;
  }

  /// Whether two lists of axes, which make as many shards, cut a dimension into the same shards.
  bool cutsAlike(size_t dim, ArrayRef<unsigned> a, ArrayRef<unsigned> b) const {
    if (shape[dim] % numShards(mesh, a) == 0)
      return true;
    auto sorted = [&](ArrayRef<unsigned> axes) {
      auto shards = shardsOf(mesh, shape[dim], axes);
      llvm::sort(shards);
      return shards;
    };
    return sorted(a) == sorted(b);
  }

  ReshardSteps pathTo(int64_t index) {
    ReshardSteps steps;
    for (; nodes[index].parent >= 0; index = nodes[index].parent)
      steps.push_back(nodes[index].step);
    std::reverse(steps.begin(), steps.end());
    ReshardSteps joined;
    for (ReshardStep &step : steps) {
      ReshardStep *last = joined.empty() ? nullptr : &joined.back();
      if (last && step.kind == Kind::AllSlice && last->kind == Kind::AllSlice && last->dim == step.dim) {
        last->axes.append(step.axes);
        last->after = step.after;
        continue;
      }
      if (step.kind == Kind::Permute) {
        Permutation permutation(mesh, shape, step.before.dims, step.after.dims);
        step.axes = permutation.axes;
        step.sources = permutation.getSources();
      }
      joined.push_back(std::move(step));
    }
    return joined;
  }

  MeshSizes mesh;
  Cuts cuts;
  int64_t ranks = 1;
  ArrayRef<int64_t> shape;
  const TensorSharding &from, &to;
  SmallVector<size_t> fixed;      ///< axes in front of each dimension that stay
  llvm::SmallBitVector sliceable; ///< axes that the target shards by
  llvm::SmallBitVector movable;   ///< axes whose use changes
  std::map<std::vector<int64_t>, int64_t> known;
  std::deque<Node> nodes;
  struct Later {
    bool operator()(const std::pair<Cost, int64_t> &a, const std::pair<Cost, int64_t> &b) const {
      return b.first < a.first || (!(a.first < b.first) && b.second < a.second);
    }
  };
  std::priority_queue<std::pair<Cost, int64_t>, std::vector<std::pair<Cost, int64_t>>, Later> queue;
};

} // namespace

int64_t nd::sentElements(MeshSizes mesh, ArrayRef<int64_t> shape, const ReshardStep &step) {
  int64_t ranks = 1;
  for (int64_t size : mesh)
    ranks *= size;
  if (step.kind == Kind::Permute) {
    Permutation permutation(mesh, shape, step.before.dims, step.after.dims);
    return ranks / static_cast<int64_t>(permutation.held.size()) * permutation.numMoved() *
           shardElements(mesh, shape, step.before.dims);
  }
  int64_t size = numShards(mesh, step.axes), before = shardElements(mesh, shape, step.before.dims);
  switch (step.kind) {
  case Kind::AllSlice:
    return 0;
  case Kind::AllReduce:
    return ranks / size * 2 * (size - 1) * before;
  case Kind::AllGather:
    return ranks * (size - 1) * before;
  case Kind::ReduceScatter:
    return ranks * (size - 1) * shardElements(mesh, shape, step.after.dims);
  case Kind::AllToAll: {
    SmallVector<AxisList> part(step.before.dims);
    part[step.dim].append(step.axes);
    return ranks * (size - 1) * shardElements(mesh, shape, part);
  }
  case Kind::Permute:
    break;
  }
  llvm_unreachable("unknown kind of step");
}

const ReshardSteps &ReshardPlanner::plan(ArrayRef<int64_t> shape, const TensorSharding &from,
                                         const TensorSharding &to) {
  std::vector<int64_t> key(shape.begin(), shape.end());
  for (const TensorSharding *sharding : {&from, &to}) {
    std::vector<int64_t> code = encode(sharding->dims, sharding->unreduced);
    key.insert(key.end(), code.begin(), code.end());
    key.push_back(-2 - static_cast<int64_t>(sharding->kind));
  }
  auto [it, isNew] = plans.try_emplace(key);
  if (isNew)
    it->second = Search(mesh, cuts, shape, from, to).run();
  return it->second;
}
