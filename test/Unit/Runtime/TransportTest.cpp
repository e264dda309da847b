//===- TransportTest.cpp - Collectives over shared memory -----------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "TestMesh.h"

using namespace nd::rt;

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
