//===- TransportTest.cpp - Collectives over shared memory -----------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "nd/Runtime/Core/Rank.h"
#include "nd/Runtime/Core/SharedMemory.h"
#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <gtest/gtest.h>
#include <random>
#include <sys/mman.h>
#include <thread>

using namespace nd::rt;

namespace {

/// A collective of a test, with what its descriptor points to.
struct Collective {
  nd_collective_desc desc{};
  std::vector<nd_collective_operand> operands;
  std::vector<int32_t> sources;
};

/// The ranks of a mesh as threads of this process, over one anonymous mapping.
class Mesh {
public:
  Mesh(std::vector<int32_t> sizes, std::vector<Collective> list, int nodes = 1) : collectives(std::move(list)) {
    program.num_nodes = nodes;
    program.num_axes = static_cast<int32_t>(sizes.size());
    for (size_t axis = 0; axis < sizes.size(); ++axis)
      ranks *= program.axis_sizes[axis] = sizes[axis];
    for (size_t i = 0; i < collectives.size(); ++i) {
      nd_collective_desc &desc = collectives[i].desc;
      desc.id = static_cast<int32_t>(i);
      desc.name = "test", desc.location = "here", desc.group = "group";
      desc.num_operands = static_cast<int32_t>(collectives[i].operands.size());
      desc.operands = collectives[i].operands.data();
      desc.sources = collectives[i].sources.data();
      pointers.push_back(&desc);
    }
    program.num_collectives = static_cast<int32_t>(collectives.size());
    program.collectives = pointers.data();
    program.arena_bytes = 64 << 20;
    SharedMemoryLayout layout(ranks, program);
    bytes = layout.totalBytes();
    memory = static_cast<char *>(
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  }
  ~Mesh() { munmap(memory, bytes); }

  const nd_collective_desc &operator[](size_t index) const { return collectives[index].desc; }

  /// Runs body(rank, self) on all ranks at once.
  void run(const std::function<void(nd_rank &, int)> &body) {
    std::vector<std::thread> threads;
    for (int self = 0; self < ranks; ++self)
      threads.emplace_back([&, self] {
        nd_rank rank;
        nd_program own = program;
        if (self == strange)
          own.arena_bytes -= 1;
        rank.program = &own, rank.rank = self, rank.ranks = ranks, rank.status = &rank.ownStatus;
        std::string error;
        ASSERT_TRUE(rank.pool.start(1, error));
        rank.transport = openTransport(own, self, ranks, memory, /*spin=*/false, error);
        ASSERT_TRUE(rank.transport) << error;
        rank.arena = memory + SharedMemoryLayout(ranks, program).arenaOffset(self);
        body(rank, self);
        if (testing::Test::HasFatalFailure())
          loseRank(self); // the others would wait for it
        rank.arena = nullptr;
      });
    for (std::thread &thread : threads)
      thread.join();
  }

  void loseRank(int rank) { reinterpret_cast<JobStatus *>(memory)->lostRank.store(rank + 1); }

  nd_program program{};
  int ranks = 1;
  int strange = -1; ///< a rank that runs another program
  std::vector<Collective> collectives;

private:
  std::vector<const nd_collective_desc *> pointers;
  char *memory;
  int64_t bytes;
};

/// `count` elements of an operand: the part of a rank for gathers and scatters.
Collective collective(int32_t kind, std::vector<int8_t> axes, std::vector<int64_t> counts, int32_t dtype = ND_F32,
                      int32_t reduction = ND_SUM) {
  Collective result;
  nd_collective_desc &desc = result.desc;
  desc.kind = kind, desc.dtype = dtype, desc.reduction = reduction;
  desc.num_axes = static_cast<int32_t>(axes.size());
  std::copy(axes.begin(), axes.end(), desc.axes);
  for (int64_t count : counts)
    result.operands.push_back({1,
                               1,
                               count,
                               {0, 0, kind == ND_REDUCE_SCATTER || kind == ND_ALL_TO_ALL ? count : 0},
                               {0, 0, kind == ND_ALL_GATHER || kind == ND_ALL_TO_ALL ? count : 0}});
  return result;
}

void runCollective(nd_rank &rank, const nd_collective_desc &desc, std::vector<void *> operands) {
  nd_rt_collective_start(&rank, &desc, operands.data());
  nd_rt_collective_wait(&rank, &desc);
  ASSERT_FALSE(rank.failed) << rank.error;
}

/// Element `offset` of the rank's arena.
template <typename T = float> T *at(nd_rank &rank, int64_t offset = 0) {
  return reinterpret_cast<T *>(rank.arena) + offset;
}

float element(int rank, int64_t i) { return std::sin(static_cast<float>(rank * 7919 + i)); }

constexpr int64_t large = 536633; // no multiple of anything

} // namespace

TEST(Transport, AllReduceSumsInRankOrderOnAllRanks) {
  for (int ranks : {2, 3, 8})
    for (int64_t count : {int64_t(1), int64_t(5), int64_t(1000), large}) {
      Mesh mesh({ranks}, {collective(ND_ALL_REDUCE, {0}, {count})});
      std::vector<int64_t> sent(ranks);
      mesh.run([&](nd_rank &rank, int self) {
        float *values = at(rank);
        for (int repeat = 0; repeat < 3; ++repeat) {
          for (int64_t i = 0; i < count; ++i)
            values[i] = element(self, i + repeat);
          runCollective(rank, mesh[0], {values, values});
          for (int64_t i = 0; i < count; ++i) {
            float expected = element(0, i + repeat);
            for (int other = 1; other < ranks; ++other)
              expected += element(other, i + repeat);
            ASSERT_EQ(values[i], expected) << i; // bit for bit
          }
        }
        sent[self] = rank.transport->getSent()[0].bytes;
      });
      int64_t total = 0;
      for (int64_t bytes : sent)
        total += bytes;
      EXPECT_EQ(total, 3 * 2 * (ranks - 1) * count * 4);
    }
}

TEST(Transport, GroupsOfAxesInterleave) {
  // 2 x 3: sums over the inner axis, the outer, and both, all started before the first is waited for.
  const std::vector<std::vector<int8_t>> groups = {{1}, {0}, {0, 1}, {1}};
  const std::vector<int64_t> counts = {large, 77, large / 3, 3};
  std::vector<Collective> list;
  for (size_t i = 0; i < groups.size(); ++i)
    list.push_back(collective(ND_ALL_REDUCE, groups[i], {counts[i]}));
  Mesh mesh({2, 3}, list);
  mesh.run([&](nd_rank &rank, int self) {
    for (int repeat = 0; repeat < 4; ++repeat) {
      for (size_t c = 0; c < groups.size(); ++c) {
        float *values = at(rank, 2 * c * large), *result = values + large;
        for (int64_t i = 0; i < counts[c]; ++i)
          values[i] = element(self, i), result[i] = NAN;
        void *operands[] = {values, result};
        nd_rt_collective_start(&rank, &mesh[c], operands);
      }
      for (size_t c : {3, 1, 0, 2}) {
        nd_rt_collective_wait(&rank, &mesh[c]);
        ASSERT_FALSE(rank.failed) << rank.error;
        bool overRows = groups[c][0] == 0, overColumns = groups[c].back() == 1;
        for (int64_t i = 0; i < counts[c]; i += 97) {
          float expected = 0;
          bool first = true;
          for (int other = 0; other < 6; ++other)
            if ((overRows || other / 3 == self / 3) && (overColumns || other % 3 == self % 3))
              expected = first ? element(other, i) : expected + element(other, i), first = false;
          ASSERT_EQ(at(rank, (2 * c + 1) * large)[i], expected);
        }
      }
    }
  });
}

TEST(Transport, GatherAndScatter) {
  constexpr int ranks = 4;
  constexpr int64_t part = large, few = 3;
  Mesh mesh({ranks}, {collective(ND_ALL_GATHER, {0}, {part, few}), collective(ND_REDUCE_SCATTER, {0}, {part, few})});
  std::vector<int64_t> gathered(ranks), scattered(ranks);
  mesh.run([&](nd_rank &rank, int self) {
    float *mine = at(rank), *all = at(rank, part), *mineToo = at(rank, 6 * part), *allToo = at(rank, 6 * part + few);
    for (int64_t i = 0; i < part; ++i)
      mine[i] = element(self, i);
    std::copy_n(mine, few, mineToo);
    runCollective(rank, mesh[0], {mine, mineToo, all, allToo});
    for (int64_t i = 0; i < ranks * part; i += 13)
      ASSERT_EQ(all[i], element(static_cast<int>(i / part), i % part));
    for (int64_t i = 0; i < ranks * few; ++i)
      ASSERT_EQ(allToo[i], element(static_cast<int>(i / few), i % few));
    runCollective(rank, mesh[1], {all, allToo, mine, mineToo});
    for (int64_t i = 0; i < part; i += 13)
      ASSERT_FLOAT_EQ(mine[i], 4 * element(self, i));
    for (int64_t i = 0; i < few; ++i)
      ASSERT_FLOAT_EQ(mineToo[i], 4 * element(self, i));
    gathered[self] = rank.transport->getSent()[0].bytes;
    scattered[self] = rank.transport->getSent()[1].bytes;
  });
  for (int self = 0; self < ranks; ++self) {
    EXPECT_EQ(gathered[self], (ranks - 1) * (part + few) * 4);
    EXPECT_EQ(scattered[self], (ranks - 1) * (part + few) * 4);
  }
}

TEST(Transport, StridedPartsOfAGroupInAnotherOrder) {
  // On 2 x 3, over the inner axis as the major one: rank (i, j) is at position 2 j + i. Rows of 6 parts of 5.
  constexpr int64_t rows = 7, inner = 5, parts = 6;
  Collective gather = collective(ND_ALL_GATHER, {1, 0}, {});
  gather.operands = {{rows, 1, inner, {inner, inner, 0}, {parts * inner, inner, inner}}};
  Collective exchange = collective(ND_ALL_TO_ALL, {1, 0}, {});
  exchange.operands = {{rows, 1, inner, {parts * inner, inner, inner}, {inner, inner, rows * inner}}};
  Collective permute = collective(ND_PERMUTE, {1, 0}, {inner});
  permute.sources = {0, 2, 1, 4, 5, 3};
  Mesh mesh({2, 3}, {gather, exchange, permute});
  auto rankAt = [](int position) { return position % 2 * 3 + position / 2; };
  std::vector<int64_t> sent(6);
  mesh.run([&](nd_rank &rank, int self) {
    int own = self % 3 * 2 + self / 3;
    float *part = at(rank), *whole = at(rank, 1000), *got = at(rank, 2000);
    for (int64_t i = 0; i < rows * inner; ++i)
      part[i] = element(self, i);
    runCollective(rank, mesh[0], {part, whole});
    for (int64_t i = 0; i < rows * parts * inner; ++i) {
      int64_t row = i / (parts * inner), position = i / inner % parts, column = i % inner;
      ASSERT_EQ(whole[i], element(rankAt(static_cast<int>(position)), row * inner + column));
    }
    for (int64_t i = 0; i < rows * parts * inner; ++i)
      whole[i] = element(self, i);
    runCollective(rank, mesh[1], {whole, got});
    for (int64_t i = 0; i < rows * parts * inner; ++i) {
      int64_t position = i / (rows * inner), row = i / inner % rows, column = i % inner;
      ASSERT_EQ(got[i], element(rankAt(static_cast<int>(position)), row * parts * inner + own * inner + column));
    }
    runCollective(rank, mesh[2], {part, got});
    for (int64_t i = 0; i < inner; ++i)
      ASSERT_EQ(got[i], element(rankAt(permute.sources[own]), i));
    ASSERT_EQ(rank.transport->getSent()[0].bytes, (parts - 1) * rows * inner * 4);
    ASSERT_EQ(rank.transport->getSent()[1].bytes, (parts - 1) * rows * inner * 4);
    sent[own] = rank.transport->getSent()[2].bytes;
  });
  for (int position = 0; position < 6; ++position)
    EXPECT_EQ(sent[position], position == 0 ? 0 : inner * 4);
}

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

TEST(TransportOverNodes, GroupsThatShareNodesUnevenlyAreRefused) {
  std::vector<Collective> list = {collective(ND_ALL_REDUCE, {1}, {4})};
  Mesh mesh({2, 3}, list, 3); // ranks 0 1 | 2 3 | 4 5
  std::vector<char> memory(SharedMemoryLayout(6).controlBytes() + 4096);
  std::string error;
  EXPECT_EQ(openTransport(mesh.program, 0, 6, memory.data(), /*spin=*/false, error), nullptr);
  EXPECT_EQ(error, "collective 'test' (here): of the 3 ranks of its group 2 are on node 0 and 1 on node 1, each of 2 "
                   "ranks; take a number of --nodes that cuts the mesh evenly");
}

TEST(Transport, TypesAndReductions) {
  Mesh mesh({3}, {collective(ND_ALL_REDUCE, {0}, {4}, ND_I64), collective(ND_ALL_REDUCE, {0}, {4}, ND_F32, ND_MAX),
                  collective(ND_ALL_REDUCE, {0}, {4}, ND_F64, ND_MIN), collective(ND_ALL_REDUCE, {0}, {1}, ND_BF16)});
  mesh.run([&](nd_rank &rank, int self) {
    auto *integers = at<int64_t>(rank);
    integers[0] = self, integers[1] = -self, integers[2] = 1L << 40, integers[3] = 0;
    runCollective(rank, mesh[0], {integers, integers});
    EXPECT_EQ(integers[0], 3);
    EXPECT_EQ(integers[1], -3);
    EXPECT_EQ(integers[2], 3L << 40);
    auto *singles = at<float>(rank, 1000);
    singles[0] = static_cast<float>(self), singles[1] = static_cast<float>(-self);
    singles[2] = self == 1 ? NAN : 1.0f, singles[3] = -INFINITY;
    runCollective(rank, mesh[1], {singles, singles});
    EXPECT_EQ(singles[0], 2.0f);
    EXPECT_EQ(singles[1], 0.0f);
    EXPECT_TRUE(std::isnan(singles[2]));
    auto *doubles = at<double>(rank, 2000);
    doubles[0] = static_cast<double>(self), doubles[1] = 1, doubles[2] = 2, doubles[3] = self == 2 ? NAN : 0.0;
    runCollective(rank, mesh[2], {doubles, doubles});
    EXPECT_EQ(doubles[0], 0.0);
    EXPECT_TRUE(std::isnan(doubles[3]));
    auto *brain = at<uint16_t>(rank, 20000);
    *brain = 0x3f80; // 1
    runCollective(rank, mesh[3], {brain, brain});
    EXPECT_EQ(*brain, 0x4040); // 3
  });
}

TEST(Transport, ALostPeerWakesThoseWhoWait) {
  Mesh mesh({2}, {collective(ND_ALL_REDUCE, {0}, {4})});
  mesh.run([&](nd_rank &rank, int self) {
    if (self == 1) {
      usleep(20000);
      mesh.loseRank(1);
      return;
    }
    void *operands[] = {rank.arena, rank.arena};
    nd_rt_collective_start(&rank, &mesh[0], operands);
    nd_rt_collective_wait(&rank, &mesh[0]);
    EXPECT_TRUE(rank.failed);
    EXPECT_STREQ(rank.error, "rank 1 is lost; this rank waited for it in all_reduce 'test' (here)");
  });
}

TEST(Transport, DifferentProgramsAreNoticed) {
  Mesh mesh({2}, {collective(ND_ALL_REDUCE, {0}, {4})});
  mesh.strange = 1;
  mesh.run([&](nd_rank &rank, int self) {
    if (self == 1)
      return;
    void *operands[] = {rank.arena, rank.arena};
    nd_rt_collective_start(&rank, &mesh[0], operands);
    nd_rt_collective_wait(&rank, &mesh[0]);
    EXPECT_TRUE(rank.failed);
    EXPECT_STREQ(rank.error, "rank 1 runs another program than this rank, which is in 'test' (here): compile the "
                             "program again");
  });
}

TEST(Transport, MisuseByTheCompilerIsNoticed) {
  Mesh mesh({2}, {collective(ND_ALL_REDUCE, {0}, {4}), collective(ND_ALL_REDUCE, {0}, {4}),
                  collective(ND_ALL_REDUCE, {0}, {4})});
  mesh.run([&](nd_rank &rank, int) {
    void *operands[] = {rank.arena, rank.arena};
    nd_rt_collective_start(&rank, &mesh[0], operands);
    nd_rt_collective_start(&rank, &mesh[0], operands);
    EXPECT_NE(std::string(rank.error).find("is started again before it is waited for"), std::string::npos);
    rank.failed = false;
    nd_rt_collective_wait(&rank, &mesh[1]);
    EXPECT_NE(std::string(rank.error).find("is waited for but was not started"), std::string::npos);
    rank.failed = false;
    float outside[4] = {};
    operands[0] = outside;
    nd_rt_collective_start(&rank, &mesh[2], operands);
    EXPECT_NE(std::string(rank.error).find("is not in the arena"), std::string::npos);
  });
}
