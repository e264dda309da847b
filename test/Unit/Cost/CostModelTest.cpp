//===- CostModelTest.cpp - What a cost has to satisfy ---------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "nd/Cost/CostModel.h"
#include "gtest/gtest.h"

using namespace nd;

namespace {

constexpr CommKind kKinds[] = {CommKind::AllReduce, CommKind::AllGather, CommKind::ReduceScatter, CommKind::AllToAll,
                               CommKind::Permute};
constexpr GroupShape kGroups[] = {{2, 1}, {3, 1}, {8, 1}, {1, 2}, {1, 5}, {4, 2}, {8, 64}};
constexpr double kPayloads[] = {0, 4, 1e3, 1e6, 1e9, 1e12};

/// Every built-in system, in turn.
template <typename Check> void forSystems(Check check) {
  for (const System &system : System::builtIn()) {
    SCOPED_TRACE(system.name);
    check(CostModel(system));
  }
}

} // namespace

TEST(CostModel, BytesAreThoseOfOptimalAlgorithms) {
  // Per rank and payload X, the factors of NCCL's bus bandwidth: 2(n-1)/n, (n-1)/n, (n-1)/n, (n-1)/n, 1.
  for (GroupShape group : kGroups) {
    int64_t n = group.ranks(), payload = 60 * n;
    EXPECT_EQ(sentBytes(CommKind::AllReduce, group, payload).total, n * (2 * (n - 1) * payload / n));
    for (CommKind kind : {CommKind::AllGather, CommKind::ReduceScatter, CommKind::AllToAll})
      EXPECT_EQ(sentBytes(kind, group, payload).total, n * ((n - 1) * payload / n));
    EXPECT_EQ(sentBytes(CommKind::Permute, group, payload).total, n * payload);
  }
}

TEST(CostModel, BytesBetweenNodes) {
  GroupShape group{4, 2};
  EXPECT_EQ(sentBytes(CommKind::AllReduce, group, 80).betweenNodes, 2 * 80);
  EXPECT_EQ(sentBytes(CommKind::AllGather, group, 80).betweenNodes, 80);
  EXPECT_EQ(sentBytes(CommKind::ReduceScatter, group, 80).betweenNodes, 80);
  EXPECT_EQ(sentBytes(CommKind::AllToAll, group, 80).betweenNodes, 8 * 40);
  EXPECT_EQ(sentBytes(CommKind::Permute, group, 80).betweenNodes, 2 * 80);
  for (CommKind kind : kKinds) {
    EXPECT_EQ(sentBytes(kind, {8, 1}, 80).betweenNodes, 0);
    // Every byte leaves the node where a node holds one rank.
    EXPECT_EQ(sentBytes(kind, {1, 8}, 80).betweenNodes, sentBytes(kind, {1, 8}, 80).total);
    EXPECT_EQ(sentBytes(kind, {1, 1}, 80).total, 0);
  }
}

TEST(CostModel, BytesOfPermutes) {
  const llvm::SmallVector<int64_t> inOrder = {0, 0, 1, 1}, outerFirst = {0, 1, 0, 1};
  EXPECT_EQ(permutedBytes({3, 0, 1, 2}, inOrder, 10).total, 40);
  EXPECT_EQ(permutedBytes({3, 0, 1, 2}, inOrder, 10).betweenNodes, 20);
  EXPECT_EQ(permutedBytes({2, 3, 0, 1}, inOrder, 10).betweenNodes, 40);
  EXPECT_EQ(permutedBytes({2, 3, 0, 1}, outerFirst, 10).betweenNodes, 0);
  EXPECT_EQ(permutedBytes({0, 1, 3, 2}, inOrder, 10).total, 20);
  EXPECT_EQ(permutedBytes({0, 1, 3, 2}, inOrder, 10).betweenNodes, 0);
  EXPECT_EQ(permutedBytes({1, 2, 3, 0}, {0, 0, 0, 0}, 10).total, sentBytes(CommKind::Permute, {4, 1}, 10).total);
}

TEST(CostModel, MorePayloadNeverCostsLess) {
  forSystems([](const CostModel &model) {
    for (CommKind kind : kKinds)
      for (GroupShape group : kGroups)
        for (size_t i = 1; i < std::size(kPayloads); ++i)
          EXPECT_LT(model.collective(kind, group, kPayloads[i - 1]), model.collective(kind, group, kPayloads[i]));
  });
}

TEST(CostModel, MoreRanksNeverCostLess) {
  forSystems([](const CostModel &model) {
    for (CommKind kind : kKinds)
      for (double payload : kPayloads) {
        EXPECT_EQ(model.collective(kind, {1, 1}, payload), 0.0);
        for (int64_t n = 1; n < 64; n *= 2) {
          EXPECT_LE(model.collective(kind, {n, 1}, payload), model.collective(kind, {2 * n, 1}, payload));
          EXPECT_LE(model.collective(kind, {1, n}, payload), model.collective(kind, {1, 2 * n}, payload));
          EXPECT_LE(model.collective(kind, {8, n}, payload), model.collective(kind, {8, 2 * n}, payload));
          // The same ranks in fewer nodes.
          EXPECT_LE(model.collective(kind, {2 * n, 1}, payload), model.collective(kind, {n, 2}, payload));
        }
      }
  });
}

TEST(CostModel, GatherAndScatterAreSymmetric) {
  forSystems([](const CostModel &model) {
    for (GroupShape group : kGroups)
      for (double payload : kPayloads) {
        double gather = model.collective(CommKind::AllGather, group, payload);
        EXPECT_EQ(gather, model.collective(CommKind::ReduceScatter, group, payload));
        EXPECT_EQ(2 * gather, model.collective(CommKind::AllReduce, group, payload));
      }
  });
}

/// A way through a third sharding is never cheaper than the collective that goes there directly.
TEST(CostModel, TriangleInequality) {
  constexpr double tolerance = 1 + 1e-12;
  forSystems([&](const CostModel &model) {
    for (GroupShape group : kGroups)
      for (double local : kPayloads) {
        auto n = static_cast<double>(group.ranks());
        // Another dimension instead of this one: exchanging parts, or gathering everything and keeping a slice.
        EXPECT_LE(model.collective(CommKind::AllToAll, group, local),
                  model.collective(CommKind::AllGather, group, n * local));
      }
    for (double whole : kPayloads)
      for (int64_t a : {2, 4, 8})
        for (int64_t b : {2, 4, 8}) {
          // Two axes at once, or one after the other, of one node and of several.
          auto gather = [&](GroupShape group, double payload) {
            return model.collective(CommKind::AllGather, group, payload);
          };
          EXPECT_LE(gather({a * b, 1}, whole), tolerance * (gather({a, 1}, whole / double(b)) + gather({b, 1}, whole)));
          EXPECT_LE(gather({a, b}, whole), tolerance * (gather({1, b}, whole / double(a)) + gather({a, 1}, whole)));
          EXPECT_LE(gather({a, b}, whole), tolerance * (gather({a, 1}, whole / double(b)) + gather({1, b}, whole)));
          EXPECT_LE(gather({1, a * b}, whole), tolerance * (gather({1, a}, whole / double(b)) + gather({1, b}, whole)));
        }
  });
}

TEST(CostModel, Roofline) {
  System system = llvm::cantFail(System::find("h100x8"));
  CostModel model(system);
  EXPECT_DOUBLE_EQ(model.compute(989e12, 0, "bf16"), 1.0);
  EXPECT_DOUBLE_EQ(model.compute(67e12, 0, "f32"), 1.0);
  EXPECT_DOUBLE_EQ(model.compute(1, 3.35e12, "bf16"), 1.0);
  // A rank's tokens from which on the gather of a layer's weights hides behind its forward products (F * ep / 2 Bw).
  double weights = 1e9, tokens = 989e12 * 2 / (2 * 450e9);
  EXPECT_NEAR(model.compute(2 * weights * tokens, 0, "bf16"), 2 * weights / system.insideNode.bandwidth, 1e-9);
}
