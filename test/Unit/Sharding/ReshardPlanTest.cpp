//===- ReshardPlanTest.cpp - Reshards are right and minimal ---------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// All pairs of shardings of small tensors on small meshes. `Ranks` carries out a plan on sets of elements, from what
// the steps mean. `Graph` finds the cheapest way by listing every sharding, asking of every two whether one step leads
// from one to the other, and relaxing until nothing changes. Neither shares anything with the planner but
// TensorSharding.
//
//===----------------------------------------------------------------------===//

#include "../../../lib/Sharding/Reshard/ReshardPlan.h"
#include <gtest/gtest.h>
#include <random>
#include <set>

using namespace nd;
using llvm::ArrayRef;

namespace {

using Kind = ReshardStep::Kind;
using Mesh = std::vector<int64_t>;
using Shape = std::vector<int64_t>;

int64_t product(const std::vector<int64_t> &sizes) {
  int64_t result = 1;
  for (int64_t size : sizes)
    result *= size;
  return result;
}

std::string str(const TensorSharding &sharding) {
  std::string text;
  for (const AxisList &axes : sharding.dims) {
    text += "[";
    for (unsigned axis : axes)
      text += static_cast<char>('a' + axis);
    text += "]";
  }
  for (unsigned axis : sharding.unreduced)
    text += std::string(" +") + static_cast<char>('a' + axis);
  return text;
}

//===----------------------------------------------------------------------===//
// What steps mean
//===----------------------------------------------------------------------===//

/// Part of a dimension: elements [lo, lo + size) as far as they are below `end`.
struct Block {
  int64_t lo, size, end;

  Block part(int64_t index, int64_t parts) const {
    int64_t rounded = (size + parts - 1) / parts, first = lo + index * rounded;
    return {first, rounded, std::min(end, first + rounded)};
  }
  bool contains(int64_t i) const { return i >= lo && i < end; }
};

class Ranks {
public:
  /// The elements of the whole tensor that a rank holds; 0: not held.
  using Contents = std::vector<int64_t>;

  Ranks(const Mesh &mesh, const Shape &shape) : mesh(mesh), shape(shape), held(product(mesh)) {}

  /// Fills the ranks: each partial value of each element is another number.
  void fill(const TensorSharding &sharding) {
    for (int64_t rank = 0; rank < numRanks(); ++rank)
      held[rank] = expected(sharding, sharding, rank);
  }

  /// What a rank holds under `now` of a tensor that was unreduced as in `from`. The partial value of element i at
  /// coordinates c of the unreduced axes is factor * (i + 1) + a number made of c.
  Contents expected(const TensorSharding &now, const TensorSharding &from, int64_t rank) const {
    int64_t count = 0, numbers = 0;
    constexpr int64_t factor = 1 << 20;
    std::set<std::vector<int64_t>> seen;
    for (int64_t other = 0; other < numRanks(); ++other) {
      std::vector<int64_t> partial;
      bool counts = true;
      int64_t number = 1;
      for (unsigned axis : from.unreduced) {
        partial.push_back(coordinate(other, axis));
        number = number * 13 + partial.back() * partial.back();
        counts &= !llvm::is_contained(now.unreduced, axis) || partial.back() == coordinate(rank, axis);
      }
      if (counts && seen.insert(partial).second)
        ++count, numbers += number;
    }
    Contents contents(product(shape));
    std::vector<Block> blocks = blocksOf(now, rank);
    for (size_t i = 0; i < contents.size(); ++i)
      if (isIn(blocks, i))
        contents[i] = count * factor * static_cast<int64_t>(i + 1) + numbers;
    return contents;
  }

  void apply(const ReshardStep &step) {
    std::vector<Contents> result(held.size());
    bool sums = step.kind == Kind::AllReduce || step.kind == Kind::ReduceScatter;
    bool cuts = step.kind == Kind::AllSlice || step.kind == Kind::ReduceScatter || step.kind == Kind::AllToAll;
    for (int64_t rank = 0; rank < numRanks(); ++rank) {
      std::vector<int64_t> group = groupOf(rank, step.axes);
      int64_t position = std::find(group.begin(), group.end(), rank) - group.begin();
      if (step.kind == Kind::Permute) {
        result[rank] = held[group[step.sources[position]]];
        continue;
      }
      result[rank].resize(product(shape));
      std::vector<Block> own = blocksOf(TensorSharding::replicated(static_cast<int64_t>(shape.size())), rank);
      if (cuts) {
        own[step.dim] = blocksOf(step.before, rank)[step.dim];
        for (unsigned axis : step.axes)
          own[step.dim] = own[step.dim].part(coordinate(rank, axis), mesh[axis]);
      }
      for (int64_t member : step.kind == Kind::AllSlice ? std::vector<int64_t>{rank} : group)
        for (size_t i = 0; i < held[member].size(); ++i) {
          if (held[member][i] == 0 || (cuts && !isIn(own, i)))
            continue;
          EXPECT_TRUE(sums || result[rank][i] == 0) << "an element arrives twice";
          result[rank][i] += held[member][i];
        }
    }
    held = std::move(result);
  }

  bool matches(const TensorSharding &to, const TensorSharding &from) const {
    for (int64_t rank = 0; rank < numRanks(); ++rank)
      if (held[rank] != expected(to, from, rank))
        return false;
    return true;
  }

  /// Elements that ranks need and do not own, of a tensor that is not unreduced.
  int64_t missing(const TensorSharding &from, const TensorSharding &to) const {
    int64_t count = 0;
    for (int64_t rank = 0; rank < numRanks(); ++rank) {
      std::vector<Block> own = blocksOf(from, rank), needed = blocksOf(to, rank);
      for (int64_t i = 0; i < product(shape); ++i)
        count += isIn(needed, i) && !isIn(own, i);
    }
    return count;
  }

  std::vector<Block> blocksOf(const TensorSharding &sharding, int64_t rank) const {
    std::vector<Block> blocks;
    for (size_t dim = 0; dim < shape.size(); ++dim) {
      Block block{0, shape[dim], shape[dim]};
      for (unsigned axis : sharding.dims[dim])
        block = block.part(coordinate(rank, axis), mesh[axis]);
      blocks.push_back(block);
    }
    return blocks;
  }

private:
  int64_t numRanks() const { return static_cast<int64_t>(held.size()); }
  int64_t coordinate(int64_t rank, unsigned axis) const {
    for (size_t inner = mesh.size() - 1; inner > axis; --inner)
      rank /= mesh[inner];
    return rank % mesh[axis];
  }
  /// The ranks along axes, by position.
  std::vector<int64_t> groupOf(int64_t rank, ArrayRef<unsigned> axes) const {
    std::map<int64_t, int64_t> members;
    for (int64_t other = 0; other < numRanks(); ++other) {
      int64_t position = 0;
      bool same = true;
      for (unsigned axis = 0; axis < mesh.size(); ++axis)
        same &= llvm::is_contained(axes, axis) || coordinate(other, axis) == coordinate(rank, axis);
      for (unsigned axis : axes)
        position = position * mesh[axis] + coordinate(other, axis);
      if (same)
        members[position] = other;
    }
    std::vector<int64_t> group;
    for (auto [position, member] : members)
      group.push_back(member);
    return group;
  }
  /// Whether row-major element i lies in the blocks of all dimensions.
  bool isIn(const std::vector<Block> &blocks, size_t i) const {
    for (size_t dim = shape.size(); dim-- > 0; i /= shape[dim])
      if (!blocks[dim].contains(static_cast<int64_t>(i % shape[dim])))
        return false;
    return true;
  }

  const Mesh &mesh;
  const Shape &shape;
  std::vector<Contents> held;
};

//===----------------------------------------------------------------------===//
// The cheapest way, by looking at all
//===----------------------------------------------------------------------===//

/// Every sharding that uses some of the axes.
std::vector<TensorSharding> allShardings(unsigned axes, unsigned subset, size_t rank) {
  std::vector<TensorSharding> result{TensorSharding::replicated(static_cast<int64_t>(rank))};
  for (unsigned axis = 0; axis < axes; ++axis) {
    if (!(subset >> axis & 1))
      continue;
    std::vector<TensorSharding> more;
    for (const TensorSharding &sharding : result) {
      more.push_back(sharding);
      more.push_back(sharding);
      more.back().unreduced.push_back(axis);
      for (size_t dim = 0; dim < rank; ++dim)
        for (size_t place = 0; place <= sharding.dims[dim].size(); ++place) {
          more.push_back(sharding);
          AxisList &list = more.back().dims[dim];
          list.insert(list.begin() + place, axis);
        }
    }
    result = more;
  }
  return result;
}

unsigned usedAxes(const TensorSharding &sharding) {
  unsigned used = 0;
  for (const AxisList &list : sharding.dims)
    for (unsigned axis : list)
      used |= 1u << axis;
  for (unsigned axis : sharding.unreduced)
    used |= 1u << axis;
  return used;
}

class Graph {
public:
  using Cost = std::pair<int64_t, int64_t>; ///< elements sent by all ranks, collectives

  Graph(const Mesh &mesh, const Shape &shape, std::vector<TensorSharding> shardings)
      : shardings(std::move(shardings)), mesh(mesh), shape(shape), ranks(mesh, shape) {
    for (size_t a = 0; a < this->shardings.size(); ++a)
      for (size_t b = 0; b < this->shardings.size(); ++b)
        if (a != b)
          if (std::optional<Cost> cost = oneStep(this->shardings[a], this->shardings[b]))
            edges.push_back({a, b, *cost});
  }

  /// The costs from one sharding to all.
  std::vector<Cost> costsFrom(size_t source) const {
    std::vector<Cost> best(shardings.size(), {std::numeric_limits<int64_t>::max() / 2, 0});
    best[source] = {0, 0};
    for (bool changed = true; changed;) {
      changed = false;
      for (const auto &[a, b, cost] : edges) {
        Cost through{best[a].first + cost.first, best[a].second + cost.second};
        if (through < best[b])
          best[b] = through, changed = true;
      }
    }
    return best;
  }

  std::vector<TensorSharding> shardings;

private:
  int64_t blockElements(const TensorSharding &sharding) const {
    int64_t elements = 1;
    for (const Block &block : ranks.blocksOf(sharding, 0))
      elements *= block.size;
    return elements;
  }

  /// Dimension `dim` of `more` is that of `less` with further axes behind; everything else is equal.
  std::optional<AxisList> extra(const TensorSharding &less, const TensorSharding &more, size_t &dim) const {
    std::optional<AxisList> axes;
    for (size_t d = 0; d < shape.size(); ++d) {
      ArrayRef<unsigned> a = less.dims[d], b = more.dims[d];
      if (a == b)
        continue;
      if (axes || a.size() > b.size() || b.take_front(a.size()) != a)
        return std::nullopt;
      axes = AxisList(b.drop_front(a.size()));
      dim = d;
    }
    return axes;
  }

  std::optional<Cost> oneStep(const TensorSharding &a, const TensorSharding &b) const {
    int64_t all = product(mesh), size = 1;
    size_t dim = 0, other = 0;
    if (a.unreduced == b.unreduced) {
      if (extra(a, b, dim))
        return Cost{0, 0}; // slice
      if (std::optional<AxisList> axes = extra(b, a, dim)) {
        for (unsigned axis : *axes)
          size *= mesh[axis];
        return Cost{all * (size - 1) * blockElements(a), 1}; // gather
      }
      for (size_t from = 0; from < shape.size(); ++from)
        for (size_t keep = 0; keep < a.dims[from].size(); ++keep) { // exchange
          TensorSharding rest = a;
          AxisList moved(ArrayRef<unsigned>(a.dims[from]).drop_front(keep));
          rest.dims[from].truncate(keep);
          std::optional<AxisList> axes = extra(rest, b, other);
          if (!axes || *axes != moved || other == from)
            continue;
          TensorSharding part = a;
          part.dims[other].append(moved);
          size = 1;
          for (unsigned axis : moved)
            size *= mesh[axis];
          return Cost{all * (size - 1) * blockElements(part), 1};
        }
      return permute(a, b);
    }
    AxisList reduced;
    for (unsigned axis : a.unreduced)
      if (!llvm::is_contained(b.unreduced, axis))
        reduced.push_back(axis);
    if (reduced.size() + b.unreduced.size() != a.unreduced.size())
      return std::nullopt;
    for (unsigned axis : reduced)
      size *= mesh[axis];
    if (a.dims == b.dims)
      return Cost{all / size * 2 * (size - 1) * blockElements(a), 1};
    std::optional<AxisList> axes = extra(a, b, dim);
    if (!axes || !std::is_permutation(axes->begin(), axes->end(), reduced.begin(), reduced.end()))
      return std::nullopt;
    return Cost{all * (size - 1) * blockElements(b), 1};
  }

  /// Possible where the ranks' blocks are the same ones, as often.
  std::optional<Cost> permute(const TensorSharding &a, const TensorSharding &b) const {
    auto key = [](const std::vector<Block> &blocks) {
      std::vector<int64_t> numbers;
      for (const Block &block : blocks)
        if (block.lo < block.end)
          numbers.insert(numbers.end(), {block.lo, block.end});
        else
          numbers.insert(numbers.end(), {-1, -1});
      return numbers;
    };
    std::multiset<std::vector<int64_t>> before, after;
    int64_t moved = 0;
    for (int64_t rank = 0; rank < product(mesh); ++rank) {
      std::vector<int64_t> has = key(ranks.blocksOf(a, rank)), needs = key(ranks.blocksOf(b, rank));
      before.insert(has);
      after.insert(needs);
      moved += has != needs;
    }
    if (before != after)
      return std::nullopt;
    return Cost{moved * blockElements(a), 1};
  }

  struct Edge {
    size_t a, b;
    Cost cost;
  };
  const Mesh &mesh;
  const Shape &shape;
  Ranks ranks;
  std::vector<Edge> edges;
};

bool canReshard(const TensorSharding &from, const TensorSharding &to) {
  return llvm::all_of(to.unreduced, [&](unsigned axis) { return llvm::is_contained(from.unreduced, axis); });
}

/// Carries out the plan and returns what it costs.
Graph::Cost checkPlan(ReshardPlanner &planner, Ranks &ranks, const Mesh &mesh, const Shape &shape,
                      const TensorSharding &from, const TensorSharding &to) {
  ranks.fill(from);
  TensorSharding state = from;
  Graph::Cost cost{0, 0};
  std::string pair = str(from) + " -> " + str(to);
  for (const ReshardStep &step : planner.plan(shape, from, to)) {
    EXPECT_TRUE(step.before == state) << pair;
    ranks.apply(step);
    EXPECT_TRUE(ranks.matches(step.after, from)) << pair << " at " << str(step.after);
    state = step.after;
    cost.first += sentElements(mesh, shape, step);
    cost.second += step.kind != Kind::AllSlice;
  }
  EXPECT_TRUE(state == to) << pair << " ends at " << str(state);
  return cost;
}

/// All pairs: every plan does what it should and costs what the cheapest way costs.
void checkAllPairs(const Mesh &mesh, const Shape &shape) {
  ReshardPlanner planner(mesh);
  Ranks ranks(mesh, shape);
  int64_t pairs = 0, sent = 0, missing = 0, withGap = 0;
  for (unsigned subset = 0; subset < 1u << mesh.size(); ++subset) {
    Graph graph(mesh, shape, allShardings(static_cast<unsigned>(mesh.size()), subset, shape.size()));
    for (size_t source = 0; source < graph.shardings.size(); ++source) {
      std::vector<Graph::Cost> costs = graph.costsFrom(source);
      const TensorSharding &from = graph.shardings[source];
      for (size_t target = 0; target < graph.shardings.size(); ++target) {
        const TensorSharding &to = graph.shardings[target];
        // Plans use the axes of the two shardings: the pairs of a subset are those that use just its axes.
        if ((usedAxes(from) | usedAxes(to)) != subset || !canReshard(from, to))
          continue;
        ++pairs;
        Graph::Cost cost = checkPlan(planner, ranks, mesh, shape, from, to);
        ASSERT_EQ(cost, costs[target]) << str(from) << " -> " << str(to);
        if (from.unreduced.empty()) {
          int64_t needed = ranks.missing(from, to);
          sent += cost.first, missing += needed, withGap += cost.first > needed;
        }
      }
    }
  }
  printf("    %ld pairs; of the reduced ones, %ld elements are sent where %ld are needed and not owned (%ld pairs send "
         "more)\n",
         pairs, sent, missing, withGap);
}

/// Rank programs have one shape for all ranks: on the way no dimension is cut unevenly, though that may send less.
TEST(ReshardPlan, EvenCutsOnly) {
  Mesh mesh = {3, 2};
  Shape shape = {160, 64};
  TensorSharding from{{{1}, {}}, {0}, ReductionKind::sum}, to{{{}, {1}}, {}, ReductionKind::sum};
  ReshardPlanner planner(mesh, Cuts::Even);
  for (const ReshardStep &step : planner.plan(shape, from, to))
    for (auto [size, axes] : llvm::zip_equal(shape, step.after.dims))
      EXPECT_EQ(size % numShards(mesh, axes), 0);
}

} // namespace

TEST(ReshardPlan, AllPairsOf2x4) {
  checkAllPairs({2, 4}, {8, 16});
  checkAllPairs({2, 4}, {8, 16, 8});
}

TEST(ReshardPlan, AllPairsOf4x4) {
  checkAllPairs({4, 4}, {16, 16});
  checkAllPairs({4, 4}, {16, 4, 4});
}

TEST(ReshardPlan, AllPairsOf2x2x2) { checkAllPairs({2, 2, 2}, {8, 8}); }

TEST(ReshardPlan, AllPairsOf2x2x2InThreeDimensions) { checkAllPairs({2, 2, 2}, {8, 8, 8}); }

TEST(ReshardPlan, AllPairsOfUnevenTensors) {
  checkAllPairs({2, 4}, {5, 7});
  checkAllPairs({4, 4}, {6, 3});
  checkAllPairs({2, 2, 2}, {3, 5});
  checkAllPairs({2, 4}, {3, 1, 9});
}

TEST(ReshardPlan, ManyAxesAreRight) {
  Mesh mesh = {2, 2, 2, 2};
  Shape shape = {16, 16};
  ReshardPlanner planner(mesh);
  Ranks ranks(mesh, shape);
  std::vector<TensorSharding> all = allShardings(4, 15, 2);
  std::mt19937 random(1);
  for (int checked = 0; checked < 200;) {
    const TensorSharding &from = all[random() % all.size()], &to = all[random() % all.size()];
    if (!canReshard(from, to))
      continue;
    checkPlan(planner, ranks, mesh, shape, from, to);
    ++checked;
  }
}

TEST(ReshardPlan, OneJointReduction) {
  // A gradient over dp and cp, wanted sharded over fsdp: scattered over fsdp, then reduced on the shard over both.
  Mesh mesh = {2, 4, 2};
  ReshardPlanner planner(mesh);
  TensorSharding from{{{}, {}}, {0, 1, 2}, ReductionKind::sum}, to{{{1}, {}}, {}, ReductionKind::sum};
  const ReshardSteps &steps = planner.plan(Shape{64, 64}, from, to);
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[0].kind, Kind::ReduceScatter);
  EXPECT_EQ(steps[0].axes, AxisList{1});
  EXPECT_EQ(steps[1].kind, Kind::AllReduce);
  EXPECT_EQ(steps[1].axes, (AxisList{0, 2}));
}

TEST(ReshardPlan, NoneForNothing) {
  Mesh mesh = {2};
  ReshardPlanner planner(mesh);
  TensorSharding sharding{{{0}}, {}, ReductionKind::sum};
  EXPECT_TRUE(planner.plan(Shape{4}, sharding, sharding).empty());
}
