//===- TransportTest.cpp - Collectives over shared memory -----------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "nd/Runtime/Core/Rank.h"
#include "nd/Runtime/Core/SharedMemory.h"
#include <cmath>
#include <cstring>
#include <functional>
#include <gtest/gtest.h>
#include <random>
#include <sys/mman.h>
#include <thread>

using namespace nd::rt;

namespace {

/// The ranks of a mesh as threads of this process, over one anonymous mapping.
class Mesh {
public:
  Mesh(std::vector<int32_t> sizes, std::vector<nd_collective_desc> collectives) : descs(std::move(collectives)) {
    program.num_axes = static_cast<int32_t>(sizes.size());
    for (size_t axis = 0; axis < sizes.size(); ++axis)
      ranks *= program.axis_sizes[axis] = sizes[axis];
    for (size_t i = 0; i < descs.size(); ++i) {
      descs[i].id = static_cast<int32_t>(i);
      descs[i].name = "test", descs[i].location = "here";
      pointers.push_back(&descs[i]);
    }
    program.num_collectives = static_cast<int32_t>(descs.size());
    program.collectives = pointers.data();
    bytes = SharedMemoryLayout(ranks, program.num_axes).totalBytes();
    memory = static_cast<char *>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  }
  ~Mesh() { munmap(memory, bytes); }

  /// Runs body(rank, self) on all ranks at once.
  void run(const std::function<void(nd_rank &, int)> &body) {
    std::vector<std::thread> threads;
    for (int self = 0; self < ranks; ++self)
      threads.emplace_back([&, self] {
        nd_rank rank;
        rank.program = &program, rank.rank = self, rank.ranks = ranks, rank.status = &rank.ownStatus;
        std::string error;
        ASSERT_TRUE(rank.pool.start(1, error));
        rank.transport = openTransport(program, self, ranks, memory, error);
        ASSERT_TRUE(rank.transport) << error;
        body(rank, self);
      });
    for (std::thread &thread : threads)
      thread.join();
  }

  void loseRank(int rank) { reinterpret_cast<JobStatus *>(memory)->lostRank.store(rank + 1); }

  nd_program program{};
  int ranks = 1;
  std::vector<nd_collective_desc> descs;

private:
  std::vector<const nd_collective_desc *> pointers;
  char *memory;
  int64_t bytes;
};

nd_collective_desc collective(int32_t kind, uint32_t axes, int64_t count, int32_t dtype = ND_F32,
                              int32_t reduction = ND_SUM) {
  nd_collective_desc desc{};
  desc.kind = kind, desc.axes = axes, desc.count = count, desc.dtype = dtype, desc.reduction = reduction;
  return desc;
}

void runCollective(nd_rank &rank, const nd_collective_desc &desc, const void *src, void *dst) {
  nd_rt_collective_start(&rank, &desc, src, dst);
  nd_rt_collective_wait(&rank, &desc);
  ASSERT_FALSE(rank.failed) << rank.error;
}

float element(int rank, int64_t i) { return std::sin(static_cast<float>(rank * 7919 + i)); }

/// More than a chunk, and no multiple of anything.
constexpr int64_t large = slotBytes / 4 + 12345;

} // namespace

TEST(Transport, AllReduceSumsInRankOrderOnAllRanks) {
  for (int ranks : {2, 3, 8})
    for (int64_t count : {int64_t(1), int64_t(5), int64_t(1000), large}) {
      Mesh mesh({ranks}, {collective(ND_ALL_REDUCE, 1, count)});
      std::vector<int64_t> sent(ranks);
      mesh.run([&](nd_rank &rank, int self) {
        std::vector<float> values(count);
        for (int repeat = 0; repeat < 3; ++repeat) {
          for (int64_t i = 0; i < count; ++i)
            values[i] = element(self, i + repeat);
          runCollective(rank, mesh.descs[0], values.data(), values.data());
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
  // 2 x 3: sums over the inner axis, the outer, and both, one after the other.
  std::vector<nd_collective_desc> descs = {collective(ND_ALL_REDUCE, 2, large), collective(ND_ALL_REDUCE, 1, 77),
                                           collective(ND_ALL_REDUCE, 3, large / 3), collective(ND_ALL_REDUCE, 2, 3)};
  Mesh mesh({2, 3}, descs);
  mesh.run([&](nd_rank &rank, int self) {
    for (int repeat = 0; repeat < 4; ++repeat)
      for (const nd_collective_desc &desc : mesh.descs) {
        std::vector<float> values(desc.count), result(desc.count, NAN);
        for (int64_t i = 0; i < desc.count; ++i)
          values[i] = element(self, i);
        runCollective(rank, desc, values.data(), result.data());
        for (int64_t i = 0; i < desc.count; i += 97) {
          float expected = 0;
          bool first = true;
          for (int other = 0; other < 6; ++other) {
            bool member = ((desc.axes & 1) || other / 3 == self / 3) && ((desc.axes & 2) || other % 3 == self % 3);
            if (member)
              expected = first ? element(other, i) : expected + element(other, i), first = false;
          }
          ASSERT_EQ(result[i], expected);
        }
      }
  });
}

TEST(Transport, GatherAndScatter) {
  constexpr int ranks = 4;
  constexpr int64_t part = large;
  Mesh mesh({ranks}, {collective(ND_ALL_GATHER, 1, part), collective(ND_REDUCE_SCATTER, 1, ranks * part)});
  std::vector<int64_t> gathered(ranks), scattered(ranks);
  mesh.run([&](nd_rank &rank, int self) {
    std::vector<float> mine(part), all(ranks * part);
    for (int64_t i = 0; i < part; ++i)
      mine[i] = element(self, i);
    runCollective(rank, mesh.descs[0], mine.data(), all.data());
    for (int64_t i = 0; i < ranks * part; i += 13)
      ASSERT_EQ(all[i], element(static_cast<int>(i / part), i % part));
    runCollective(rank, mesh.descs[1], all.data(), mine.data());
    for (int64_t i = 0; i < part; i += 13)
      ASSERT_FLOAT_EQ(mine[i], 4 * element(self, i));
    gathered[self] = rank.transport->getSent()[0].bytes;
    scattered[self] = rank.transport->getSent()[1].bytes;
  });
  for (int self = 0; self < ranks; ++self) {
    EXPECT_EQ(gathered[self], (ranks - 1) * part * 4);
    EXPECT_EQ(scattered[self], (ranks - 1) * part * 4);
  }
}

TEST(Transport, TypesAndReductions) {
  Mesh mesh({3}, {collective(ND_ALL_REDUCE, 1, 4, ND_I64), collective(ND_ALL_REDUCE, 1, 4, ND_F32, ND_MAX),
                  collective(ND_ALL_REDUCE, 1, 4, ND_F64, ND_MIN), collective(ND_ALL_REDUCE, 1, 1, ND_BF16)});
  mesh.run([&](nd_rank &rank, int self) {
    int64_t integers[4] = {self, -self, 1L << 40, 0};
    runCollective(rank, mesh.descs[0], integers, integers);
    EXPECT_EQ(integers[0], 3);
    EXPECT_EQ(integers[1], -3);
    EXPECT_EQ(integers[2], 3L << 40);
    float singles[4] = {static_cast<float>(self), static_cast<float>(-self), self == 1 ? NAN : 1.0f, -INFINITY};
    runCollective(rank, mesh.descs[1], singles, singles);
    EXPECT_EQ(singles[0], 2.0f);
    EXPECT_EQ(singles[1], 0.0f);
    EXPECT_TRUE(std::isnan(singles[2]));
    double doubles[4] = {static_cast<double>(self), 1, 2, self == 2 ? NAN : 0.0};
    runCollective(rank, mesh.descs[2], doubles, doubles);
    EXPECT_EQ(doubles[0], 0.0);
    EXPECT_TRUE(std::isnan(doubles[3]));
    uint16_t brain = 0x3f80; // 1
    runCollective(rank, mesh.descs[3], &brain, &brain);
    EXPECT_EQ(brain, 0x4040); // 3
  });
}

TEST(Transport, ALostPeerWakesThoseWhoWait) {
  Mesh mesh({2}, {collective(ND_ALL_REDUCE, 1, 4)});
  mesh.run([&](nd_rank &rank, int self) {
    if (self == 1) {
      usleep(20000);
      mesh.loseRank(1);
      return;
    }
    float values[4] = {};
    nd_rt_collective_start(&rank, &mesh.descs[0], values, values);
    nd_rt_collective_wait(&rank, &mesh.descs[0]);
    EXPECT_TRUE(rank.failed);
    EXPECT_STREQ(rank.error, "rank 1 is lost; this rank waited for it in all_reduce 'test' (here)");
  });
}

TEST(Transport, DifferentCollectivesAreNoticed) {
  Mesh mesh({2}, {collective(ND_ALL_REDUCE, 1, 4), collective(ND_ALL_REDUCE, 1, 5)});
  mesh.run([&](nd_rank &rank, int self) {
    float values[5] = {};
    nd_rt_collective_start(&rank, &mesh.descs[self], values, values);
    nd_rt_collective_wait(&rank, &mesh.descs[self]);
    EXPECT_TRUE(rank.failed);
    EXPECT_NE(std::string(rank.error).find("ranks run different collectives"), std::string::npos) << rank.error;
  });
}
