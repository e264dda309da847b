//===- LocalBoxesTest.cpp - What a rank holds of a tensor -----------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "nd/Runtime/Core/TensorFile.h"
#include <cstring>
#include <gtest/gtest.h>
#include <vector>

using namespace nd::rt;

namespace {

/// A tensor on a mesh, seen from any rank; nothing is allocated but the description.
struct Sharded {
  Sharded(std::vector<int32_t> mesh, std::vector<int64_t> global, std::vector<int64_t> local) {
    program.num_axes = static_cast<int32_t>(mesh.size());
    std::copy(mesh.begin(), mesh.end(), program.axis_sizes);
    memset(desc.dim_axes, -1, sizeof(desc.dim_axes));
    desc.kind = "weight", desc.name = "t", desc.dtype = ND_F32, desc.rank = static_cast<int32_t>(global.size());
    std::copy(global.begin(), global.end(), desc.global_shape);
    std::copy(local.begin(), local.end(), desc.shape);
    rank.program = &program, rank.ranks = 1;
    for (int32_t size : mesh)
      rank.ranks *= size;
  }

  void shard(int dim, std::vector<int8_t> axes, std::vector<int64_t> blocks = {}) {
    std::copy(axes.begin(), axes.end(), desc.dim_axes[dim]);
    std::copy(blocks.begin(), blocks.end(), desc.dim_blocks[dim]);
  }
  void order(int dim, int64_t size, std::vector<int64_t> newUnits) {
    units = std::move(newUnits);
    desc.units_dim = dim, desc.unit_size = size;
    desc.num_units = static_cast<int32_t>(units.size()), desc.units = units.data();
  }

  /// For each element of the rank's memory the logical element that it holds, -1 for padding.
  std::vector<int64_t> held(int self, bool firstOnly = false) {
    rank.rank = self;
    std::vector<int64_t> elements(numElements(desc), -1);
    forEachRun(LocalBoxes(rank, desc, firstOnly), desc, TensorPart(), [&](const auto &run) {
      for (int64_t i = 0; i < run.count; ++i) {
        EXPECT_EQ(elements.at(run.local + i), -1);
        elements.at(run.local + i) = run.global + i;
      }
      return true;
    });
    return elements;
  }
  bool hasPadding(int self) {
    rank.rank = self;
    return LocalBoxes(rank, desc).hasPadding();
  }
  /// How often each logical element is held by all ranks together.
  std::vector<int> counts(bool firstOnly = false) {
    int64_t total = 1;
    for (int dim = 0; dim < desc.rank; ++dim)
      total *= desc.global_shape[dim];
    std::vector<int> result(total);
    for (int self = 0; self < rank.ranks; ++self)
      for (int64_t element : held(self, firstOnly))
        if (element >= 0)
          ++result.at(element);
    return result;
  }

  nd_tensor_desc desc{};
  nd_program program{};
  nd_rank rank;
  std::vector<int64_t> units;
};

using List = std::vector<int64_t>;

} // namespace

TEST(LocalBoxes, FiveRowsOverTwoByTwoAreCutInsideTheirBlocks) {
  Sharded t({2, 2}, {5}, {2});
  t.shard(0, {0, 1}, {3, 2});
  EXPECT_EQ(t.held(0), (List{0, 1}));
  EXPECT_EQ(t.held(1), (List{2, -1})); // the outer block ends
  EXPECT_EQ(t.held(2), (List{3, 4}));
  EXPECT_EQ(t.held(3), (List{-1, -1}));
  EXPECT_TRUE(t.hasPadding(1));
  EXPECT_FALSE(t.hasPadding(2));
}

TEST(LocalBoxes, TheMajorAxisIsTheFirstThatIsNamed) {
  Sharded t({2, 2}, {5}, {2});
  t.shard(0, {1, 0}, {3, 2});
  EXPECT_EQ(t.held(0), (List{0, 1}));
  EXPECT_EQ(t.held(2), (List{2, -1}));
  EXPECT_EQ(t.held(1), (List{3, 4}));
}

TEST(LocalBoxes, AVocabularyOverTwoByThreeIsHeldOnce) {
  // 50257 over fsdp3 inside tp2, axes outer to inner: fsdp, tp.
  Sharded t({3, 2}, {50257, 2}, {8377, 2});
  t.shard(0, {1, 0}, {25129, 8377});
  for (int count : t.counts())
    ASSERT_EQ(count, 1);
  EXPECT_EQ(t.held(1).front(), 25129 * 2);                       // fsdp 0, tp 1
  EXPECT_EQ(t.held(4).at(static_cast<size_t>(2 * 8374)), 50256); // fsdp 2, tp 0: its last row
}

TEST(LocalBoxes, WithoutBlocksTheLocalSizeIsTheBlock) {
  Sharded t({2, 2}, {8, 3}, {2, 3});
  t.shard(0, {0, 1});
  EXPECT_EQ(t.held(3), (List{18, 19, 20, 21, 22, 23}));
  EXPECT_FALSE(t.hasPadding(3));
}

TEST(LocalBoxes, ZigZagChunksOfAPaddedSequence) {
  // 14 positions in 4 chunks of 4, stored 0 3 1 2 over two ranks.
  Sharded t({2}, {1, 14}, {1, 8});
  t.shard(1, {0});
  t.order(1, 4, {0, 3, 1, 2});
  EXPECT_EQ(t.held(0), (List{0, 1, 2, 3, 12, 13, -1, -1}));
  EXPECT_EQ(t.held(1), (List{4, 5, 6, 7, 8, 9, 10, 11}));
  EXPECT_TRUE(t.hasPadding(0));
  EXPECT_FALSE(t.hasPadding(1));
}

TEST(LocalBoxes, AShardMayBeLessThanAUnit) {
  Sharded t({4}, {8}, {2});
  t.shard(0, {0});
  t.order(0, 4, {1, 0});
  EXPECT_EQ(t.held(0), (List{4, 5}));
  EXPECT_EQ(t.held(1), (List{6, 7}));
  EXPECT_EQ(t.held(3), (List{2, 3}));
}

TEST(LocalBoxes, CopiesAreReadByAllAndSavedByTheFirst) {
  // Two heads of 3 rows on five ranks: the first twice, the second twice, and a rank of zeros.
  Sharded t({5}, {6, 2}, {3, 2});
  t.shard(0, {0});
  t.order(0, 3, {0, 0, 1, 1, -1});
  EXPECT_EQ(t.held(0), t.held(1));
  EXPECT_EQ(t.held(2), (List{6, 7, 8, 9, 10, 11}));
  EXPECT_EQ(t.held(4), List(6, -1));
  for (int count : t.counts())
    EXPECT_EQ(count, 2);
  for (int count : t.counts(/*firstOnly=*/true))
    EXPECT_EQ(count, 1);
}

TEST(LocalBoxes, ARankBeyondTheEndOfOneDimensionHoldsNoUnitsOfAnother) {
  Sharded t({2, 2}, {1, 4}, {1, 2});
  t.shard(0, {0}, {1});
  t.shard(1, {1});
  t.order(1, 1, {3, 0, 2, 1});
  EXPECT_EQ(t.held(1), (List{2, 1}));
  EXPECT_EQ(t.held(3), (List{-1, -1}));
}

TEST(LocalBoxes, APartOfUnevenShardsLiesWithinALargerTensor) {
  // 5 of 9 rows, over 3 ranks.
  List globals;
  Sharded t({3}, {5, 2}, {2, 2});
  t.shard(0, {0}, {2});
  for (int self = 0; self < 3; ++self) {
    t.rank.rank = self;
    forEachRun(LocalBoxes(t.rank, t.desc), t.desc, TensorPart{0, 4, 9}, [&](const auto &run) {
      EXPECT_EQ(run.count, self == 2 ? 2 : 4);
      globals.push_back(run.global);
      return true;
    });
  }
  EXPECT_EQ(globals, (List{8, 12, 16}));
}

TEST(LocalBoxes, APartLiesWithinALargerTensor) {
  Sharded t({2}, {2, 4}, {2, 2});
  t.shard(1, {0});
  t.rank.rank = 1;
  List globals;
  forEachRun(LocalBoxes(t.rank, t.desc), t.desc, TensorPart{1, 3, 10}, [&](const auto &run) {
    EXPECT_EQ(run.count, 2);
    globals.push_back(run.global);
    return true;
  });
  EXPECT_EQ(globals, (List{5, 15}));
  // Rows of a part of the first dimension are one run.
  Sharded rows({1}, {2, 4}, {2, 4});
  forEachRun(LocalBoxes(rows.rank, rows.desc), rows.desc, TensorPart{0, 3, 7}, [&](const auto &run) {
    EXPECT_EQ(run.global, 12);
    EXPECT_EQ(run.count, 8);
    return true;
  });
}
