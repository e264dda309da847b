//===- ArenaPlannerTest.cpp - Plans are valid and close to the peak -------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "nd/Memory/ArenaPlanner.h"
#include "gtest/gtest.h"

#include <algorithm>
#include <random>

using namespace nd;

namespace {

constexpr int64_t alignment = 64;

void expectValid(llvm::ArrayRef<Lifetime> buffers, const ArenaPlan &plan) {
  ASSERT_EQ(plan.offsets.size(), buffers.size());
  int64_t end = 0;
  for (size_t i = 0; i < buffers.size(); ++i) {
    EXPECT_GE(plan.offsets[i], 0);
    EXPECT_EQ(plan.offsets[i] % alignment, 0);
    end = std::max(end, plan.offsets[i] + buffers[i].bytes);
    for (size_t j = 0; j < i; ++j) {
      bool apart = plan.offsets[i] + buffers[i].bytes <= plan.offsets[j] ||
                   plan.offsets[j] + buffers[j].bytes <= plan.offsets[i];
      EXPECT_TRUE(apart || !buffers[i].overlaps(buffers[j])) << "buffers " << i << " and " << j;
    }
  }
  EXPECT_LE(end, plan.bytes);
  EXPECT_GE(plan.bytes, plan.peakBytes);
}

TEST(ArenaPlanner, NothingNeedsNothing) {
  ArenaPlan plan = planArena({}, alignment);
  EXPECT_EQ(plan.bytes, 0);
  EXPECT_EQ(plan.peakBytes, 0);
}

TEST(ArenaPlanner, BuffersOfDifferentTimesShare) {
  Lifetime buffers[] = {{256, 0, 1}, {256, 2, 3}, {128, 1, 2}};
  ArenaPlan plan = planArena(buffers, alignment);
  expectValid(buffers, plan);
  EXPECT_EQ(plan.bytes, 384);
  EXPECT_EQ(plan.peakBytes, 384);
  EXPECT_EQ(plan.offsets[0], plan.offsets[1]);
}

TEST(ArenaPlanner, BuffersThatMeetInOneStepAreApart) {
  Lifetime buffers[] = {{64, 0, 1}, {64, 1, 2}};
  ArenaPlan plan = planArena(buffers, alignment);
  expectValid(buffers, plan);
  EXPECT_EQ(plan.bytes, 128);
}

TEST(ArenaPlanner, PeakCountsExactBytesTheArenaAlignedOnes) {
  Lifetime buffers[] = {{4, 0, 0}, {100, 0, 0}};
  ArenaPlan plan = planArena(buffers, alignment);
  EXPECT_EQ(plan.peakBytes, 104);
  EXPECT_EQ(plan.bytes, 192);
}

// Placing in order of time leaves a hole of 64 between the two long buffers that nothing fits into.
TEST(ArenaPlanner, FragmentationIsAvoided) {
  Lifetime buffers[] = {{128, 0, 1}, {64, 0, 9}, {128, 0, 1}, {256, 2, 9}};
  ArenaPlan plan = planArena(buffers, alignment);
  expectValid(buffers, plan);
  EXPECT_EQ(plan.bytes, 320);
}

/// Activations that live from their layer's forward to its backward, temporaries within a layer, gradients to the end
/// or to the layer's own update.
std::vector<Lifetime> stepOf(int layers, bool gradientsLast, std::mt19937 &random) {
  std::vector<Lifetime> buffers;
  std::uniform_int_distribution<int64_t> size(1, 4000);
  constexpr int64_t perLayer = 10;
  const int64_t end = 2 * layers * perLayer;
  std::vector<int64_t> activation(6), temporary(5), gradient(4);
  for (auto *sizes : {&activation, &temporary, &gradient})
    for (int64_t &bytes : *sizes)
      bytes = size(random) * 4;
  for (int64_t layer = 0; layer < layers; ++layer) {
    int64_t forward = layer * perLayer, backward = end - (layer + 1) * perLayer;
    for (size_t i = 0; i < activation.size(); ++i)
      buffers.push_back({activation[i], forward + static_cast<int64_t>(i), backward + 8 - static_cast<int64_t>(i)});
    for (size_t i = 0; i < temporary.size(); ++i)
      for (int64_t start : {forward, backward})
        buffers.push_back({temporary[i], start + static_cast<int64_t>(i), start + static_cast<int64_t>(i) + 2});
    for (size_t i = 0; i < gradient.size(); ++i)
      buffers.push_back({gradient[i], backward + 2 * static_cast<int64_t>(i),
                         gradientsLast ? end : backward + 2 * static_cast<int64_t>(i) + 1});
  }
  return buffers;
}

TEST(ArenaPlanner, TrainingStepsAreWithinFivePercentOfThePeak) {
  std::mt19937 random(7);
  for (int trial = 0; trial < 20; ++trial) {
    std::vector<Lifetime> buffers = stepOf(1 + trial, trial % 2, random);
    ArenaPlan plan = planArena(buffers, alignment);
    expectValid(buffers, plan);
    EXPECT_LE(static_cast<double>(plan.bytes), 1.05 * static_cast<double>(plan.peakBytes)) << "trial " << trial;
  }
}

// Nothing of a step's structure: valid always, and still near the peak.
TEST(ArenaPlanner, RandomLifetimesAreValid) {
  std::mt19937 random(11);
  std::uniform_int_distribution<int64_t> size(1, 20000), time(0, 60);
  for (int trial = 0; trial < 30; ++trial) {
    std::vector<Lifetime> buffers;
    for (int i = 0; i < 10 + 4 * trial; ++i) {
      int64_t a = time(random), b = std::min<int64_t>(a + time(random) / 4, 60);
      buffers.push_back({size(random), a, b});
    }
    ArenaPlan plan = planArena(buffers, alignment);
    expectValid(buffers, plan);
    EXPECT_LE(static_cast<double>(plan.bytes), 1.15 * static_cast<double>(plan.peakBytes)) << "trial " << trial;
  }
}

} // namespace
