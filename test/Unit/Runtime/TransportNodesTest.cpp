//===- TransportNodesTest.cpp - Collectives over several nodes ------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "TestMesh.h"

using namespace nd::rt;

namespace {

/// A mesh over nodes, and the axes of a group on it, major to minor.
struct NodeCase {
  std::vector<int32_t> sizes;
  int nodes;
  std::vector<int8_t> axes;
  int groupNodes; ///< over which a group goes
};

const NodeCase nodeCases[] = {
    {{4}, 2, {0}, 2},       {{8}, 4, {0}, 4},    {{2, 3}, 2, {0, 1}, 2},
    {{2, 3}, 2, {1, 0}, 2}, {{2, 4}, 4, {1}, 2}, {{2, 2, 2}, 2, {2, 0}, 2},
    {{2, 2, 2}, 4, {0}, 2}, {{3}, 3, {0}, 3},    {{2, 2, 2}, 2, {1}, 1},
};

/// The ranks of a group by position, and the order in which their elements are added: node by node.
struct GroupOfCase {
  std::vector<int> members;
  std::vector<std::vector<int>> byNode; ///< ranks

  GroupOfCase(const NodeCase &test, int self) {
    auto coordinates = [&](int rank) {
      std::vector<int> result(test.sizes.size());
      for (size_t axis = test.sizes.size(); axis-- > 0; rank /= test.sizes[axis])
        result[axis] = rank % test.sizes[axis];
      return result;
    };
    int ranks = 1, size = 1;
    for (int32_t axis : test.sizes)
      ranks *= axis;
    for (int8_t axis : test.axes)
      size *= test.sizes[axis];
    for (int position = 0; position < size; ++position) {
      std::vector<int> wanted = coordinates(self);
      for (int i = static_cast<int>(test.axes.size()), left = position; i-- > 0; left /= test.sizes[test.axes[i]])
        wanted[test.axes[i]] = left % test.sizes[test.axes[i]];
      for (int rank = 0; rank < ranks; ++rank)
        if (coordinates(rank) == wanted)
          members.push_back(rank);
    }
    std::vector<int> nodes;
    for (int member : members) {
      int node = member / (ranks / test.nodes);
      size_t index = std::find(nodes.begin(), nodes.end(), node) - nodes.begin();
      if (index == nodes.size())
        nodes.push_back(node), byNode.emplace_back();
      byNode[index].push_back(member);
    }
  }

  int position(int self) const {
    return static_cast<int>(std::find(members.begin(), members.end(), self) - members.begin());
  }

  /// A node's elements first, as a rank adds them.
  float sum(int64_t i) const {
    float total = 0;
    for (size_t node = 0; node < byNode.size(); ++node) {
      float part = element(byNode[node][0], i);
      for (size_t member = 1; member < byNode[node].size(); ++member)
        part += element(byNode[node][member], i);
      total = node == 0 ? part : total + part;
    }
    return total;
  }
};

} // namespace

/// More than goes through the staging memory at once.
constexpr int64_t pieces = 140001;

TEST(TransportOverNodes, ReductionsAddNodeByNodeAndSendNothingTwice) {
  for (const NodeCase &test : nodeCases)
    for (int64_t count : {int64_t(1), int64_t(77), pieces}) {
      Mesh mesh(test.sizes,
                {collective(ND_ALL_REDUCE, test.axes, {count}), collective(ND_REDUCE_SCATTER, test.axes, {count})},
                test.nodes);
      std::vector<Transport::Sent> sent[2];
      for (auto &list : sent)
        list.resize(mesh.ranks);
      mesh.run([&](nd_rank &rank, int self) {
        GroupOfCase group(test, self);
        int64_t size = group.members.size(), own = group.position(self);
        float *values = at(rank), *whole = at(rank, count), *part = at(rank, count + size * count);
        for (int repeat = 0; repeat < 2; ++repeat) {
          for (int64_t i = 0; i < count; ++i)
            values[i] = element(self, i);
          runCollective(rank, mesh[0], {values, values});
          for (int64_t i = 0; i < count; ++i)
            ASSERT_EQ(values[i], group.sum(i)) << i; // bit for bit
        }
        for (int64_t i = 0; i < size * count; ++i)
          whole[i] = element(self, i);
        runCollective(rank, mesh[1], {whole, part});
        for (int64_t i = 0; i < count; ++i)
          ASSERT_EQ(part[i], group.sum(own * count + i)) << i;
        for (int64_t i = 0; i < size * count; i += 11)
          ASSERT_EQ(whole[i], element(self, i)) << "sources stay as they are";
        for (int kind = 0; kind < 2; ++kind)
          sent[kind][self] = rank.transport->getSent()[kind];
      });
      int64_t nodes = test.groupNodes, size = GroupOfCase(test, 0).members.size(), groups = mesh.ranks / size;
      for (int kind = 0; kind < 2; ++kind) {
        int64_t total = 0, between = 0, payload = kind == 0 ? 2 * 2 * count * 4 : size * count * 4;
        for (const Transport::Sent &entry : sent[kind])
          total += entry.bytes, between += entry.betweenNodes;
        EXPECT_EQ(total, groups * (size - 1) * payload);
        EXPECT_EQ(between, groups * (nodes - 1) * payload);
      }
    }
}

TEST(TransportOverNodes, PartsArriveFromEverywhere) {
  constexpr int64_t rows = 5, inner = 7;
  for (const NodeCase &test : nodeCases) {
    int size = static_cast<int>(GroupOfCase(test, 0).members.size());
    // Parts side by side in rows, so that no part is contiguous in the whole.
    Collective gather = collective(ND_ALL_GATHER, test.axes, {});
    gather.operands = {{rows, 1, inner, {inner, inner, 0}, {size * inner, inner, inner}}};
    Collective exchange = collective(ND_ALL_TO_ALL, test.axes, {});
    exchange.operands = {{rows, 1, inner, {size * inner, inner, inner}, {inner, inner, rows * inner}}};
    Collective permute = collective(ND_PERMUTE, test.axes, {rows * inner});
    for (int position = 0; position < size; ++position)
      permute.sources.push_back((position + 1) % size);
    Mesh mesh(test.sizes, {gather, exchange, permute}, test.nodes);
    std::vector<Transport::Sent> sent[3];
    for (auto &list : sent)
      list.resize(mesh.ranks);
    mesh.run([&](nd_rank &rank, int self) {
      GroupOfCase group(test, self);
      int own = group.position(self);
      float *part = at(rank), *whole = at(rank, 1000), *got = at(rank, 2000);
      for (int64_t i = 0; i < rows * inner; ++i)
        part[i] = element(self, i);
      runCollective(rank, mesh[0], {part, whole});
      for (int64_t i = 0; i < rows * size * inner; ++i) {
        int64_t row = i / (size * inner), position = i / inner % size, column = i % inner;
        ASSERT_EQ(whole[i], element(group.members[position], row * inner + column));
      }
      for (int64_t i = 0; i < rows * size * inner; ++i)
        whole[i] = element(self, i);
      runCollective(rank, mesh[1], {whole, got});
      for (int64_t i = 0; i < rows * size * inner; ++i) {
        int64_t position = i / (rows * inner), row = i / inner % rows, column = i % inner;
        ASSERT_EQ(got[i], element(group.members[position], row * size * inner + own * inner + column));
      }
      runCollective(rank, mesh[2], {part, got});
      for (int64_t i = 0; i < rows * inner; ++i)
        ASSERT_EQ(got[i], element(group.members[(own + 1) % size], i));
      for (int kind = 0; kind < 3; ++kind)
        sent[kind][self] = rank.transport->getSent()[kind];
    });
    int64_t part = rows * inner * 4, nodes = test.groupNodes, inside = size / nodes, groups = mesh.ranks / size;
    int64_t hops = 0; // of the permute, between nodes
    GroupOfCase group(test, 0);
    int ranksOfNode = mesh.ranks / test.nodes;
    for (int position = 0; position < size; ++position)
      hops += group.members[position] / ranksOfNode != group.members[(position + 1) % size] / ranksOfNode;
    const int64_t totals[] = {(size - 1) * size * part, (size - 1) * size * part, size * part};
    const int64_t betweens[] = {(nodes - 1) * size * part, (size - inside) * size * part, hops * part};
    for (int kind = 0; kind < 3; ++kind) {
      int64_t total = 0, between = 0;
      for (const Transport::Sent &entry : sent[kind])
        total += entry.bytes, between += entry.betweenNodes;
      EXPECT_EQ(total, groups * totals[kind]) << kind;
      EXPECT_EQ(between, groups * betweens[kind]) << kind;
    }
  }
}

TEST(TransportOverNodes, SumsThatHaveNoPlaceAreRefused) {
  std::vector<Collective> list = {collective(ND_REDUCE_SCATTER, {0}, {33})};
  Mesh mesh({4}, list, 2);
  EXPECT_EQ(mesh.program.staging_bytes, 2 * 2 * 64 * 4); // two halves of two slots
  mesh.program.staging_bytes -= 64;
  std::vector<char> memory(SharedMemoryLayout(4, mesh.program).arenaOffset(0));
  std::string error;
  EXPECT_EQ(openTransport(mesh.program, 0, 4, memory.data(), /*spin=*/false, error), nullptr);
  EXPECT_EQ(error,
            "collective 'test' (here): its partial sums between nodes need 1024 bytes, but the program has 960 for "
            "them; this is an error of the compiler");
}

TEST(TransportOverNodes, GroupsThatShareNodesUnevenlyAreRefused) {
  std::vector<Collective> list = {collective(ND_ALL_REDUCE, {1}, {4})};
  Mesh mesh({2, 3}, list, 3); // ranks 0 1 | 2 3 | 4 5
  std::vector<char> memory(SharedMemoryLayout(6).controlBytes() + 4096);
  std::string error;
  EXPECT_EQ(openTransport(mesh.program, 0, 6, memory.data(), /*spin=*/false, error), nullptr);
  EXPECT_EQ(error, "collective 'test' (here): of the 3 ranks of its group 2 are on node 0 and 1 on node 1, each of 2 "
                   "ranks; take a number of --nodes that cuts the mesh evenly");
}
