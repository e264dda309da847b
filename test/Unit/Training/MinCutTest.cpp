//===- MinCutTest.cpp - Minimum cuts against all cuts ---------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "MinCut.h"
#include "gtest/gtest.h"
#include <algorithm>
#include <random>

using namespace nd;

namespace {

struct Edge {
  unsigned from, to;
  int64_t capacity;
};

int64_t capacityOf(const std::vector<Edge> &edges, const std::vector<bool> &sinkSide) {
  int64_t sum = 0;
  for (const Edge &edge : edges)
    if (!sinkSide[edge.from] && sinkSide[edge.to])
      sum += edge.capacity;
  return sum;
}

std::vector<bool> cutOf(const std::vector<Edge> &edges, unsigned numNodes) {
  MinCut network;
  for (unsigned node = 0; node < numNodes; ++node)
    network.addNode();
  for (const Edge &edge : edges)
    network.addEdge(edge.from, edge.to, edge.capacity);
  return network.sinkSide(0, 1);
}

// Node 0 is the source, node 1 the sink. No cut is smaller, and none as small has fewer nodes on the sink's side.
TEST(MinCutTest, IsMinimalAndNearestToTheSinkOnRandomNetworks) {
  std::mt19937 random(7);
  auto below = [&](unsigned limit) { return static_cast<unsigned>(random() % limit); };
  for (int trial = 0; trial < 300; ++trial) {
    unsigned numNodes = 2 + below(6);
    std::vector<Edge> edges;
    for (unsigned i = 0, count = below(20); i < count; ++i)
      edges.push_back({below(numNodes), below(numNodes), below(4)});
    std::vector<bool> found = cutOf(edges, numNodes);
    ASSERT_FALSE(found[0]);
    ASSERT_TRUE(found[1]);
    int64_t best = capacityOf(edges, found);
    auto size = std::count(found.begin(), found.end(), true);
    for (unsigned set = 0; set < 1u << (numNodes - 2); ++set) {
      std::vector<bool> sinkSide = {false, true};
      for (unsigned node = 2; node < numNodes; ++node)
        sinkSide.push_back(set >> (node - 2) & 1);
      int64_t capacity = capacityOf(edges, sinkSide);
      ASSERT_LE(best, capacity);
      if (capacity == best)
        ASSERT_LE(size, std::count(sinkSide.begin(), sinkSide.end(), true));
    }
  }
}

TEST(MinCutTest, FollowsLongPathsWithoutRecursion) {
  constexpr unsigned length = 200000;
  std::vector<Edge> edges;
  for (unsigned node = 2; node + 1 < length; ++node)
    edges.push_back({node, node + 1, MinCut::kInfinite});
  edges.push_back({0, 2, MinCut::kInfinite});
  edges.push_back({length - 1, 1, 5});
  std::vector<bool> found = cutOf(edges, length);
  EXPECT_EQ(std::count(found.begin(), found.end(), true), 1);
}

} // namespace
