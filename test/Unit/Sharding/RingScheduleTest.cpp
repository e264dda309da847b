//===- RingScheduleTest.cpp - Which hops a ring of keys needs -------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "../../../lib/Sharding/Partition/RingSchedule.h"
#include "gtest/gtest.h"

using namespace nd;

namespace {

using Steps = llvm::SmallVector<int64_t>;

TEST(RingSchedule, WithoutAWindowAllAreNeeded) {
  EXPECT_EQ(neededRingSteps(RingSequence{1, 8, {}, true, 0, 0}), (Steps{0}));
  EXPECT_EQ(neededRingSteps(RingSequence{4, 8, {}, true, 0, 0}), (Steps{0, 1, 2, 3}));
  EXPECT_EQ(neededRingSteps(RingSequence{4, 8, {}, false, 0, 0}), (Steps{0, 1, 2, 3}));
}

TEST(RingSchedule, AWindowEndsTheRing) {
  EXPECT_EQ(neededRingSteps(RingSequence{4, 8, {}, true, 1, 0}), (Steps{0}));
  EXPECT_EQ(neededRingSteps(RingSequence{4, 8, {}, true, 2, 0}), (Steps{0, 1}));
  EXPECT_EQ(neededRingSteps(RingSequence{4, 8, {}, true, 9, 0}),
            (Steps{0, 1})); // the first query of a shard sees all of one before
  EXPECT_EQ(neededRingSteps(RingSequence{4, 8, {}, true, 10, 0}), (Steps{0, 1, 2}));
  // Keys to the right are visible to any distance.
  EXPECT_EQ(neededRingSteps(RingSequence{4, 8, {}, false, 2, 0}), (Steps{0, 1, 2, 3}));
}

TEST(RingSchedule, ZigZagNeighboursLieOnBothSides) {
  int64_t order[] = {0, 7, 1, 6, 2, 5, 3, 4};
  EXPECT_EQ(neededRingSteps(RingSequence{4, 8, order, true, 2, 0}), (Steps{0, 1, 3}));
  EXPECT_EQ(neededRingSteps(RingSequence{4, 8, order, true, 0, 0}), (Steps{0, 1, 2, 3}));
}

TEST(RingSchedule, PaddingIsNotSent) {
  EXPECT_EQ(neededRingSteps(RingSequence{4, 8, {}, true, 0, 8}),
            (Steps{0, 1, 2, 3})); // the first shard is seen by all others
  EXPECT_EQ(neededRingSteps(RingSequence{2, 8, {}, false, 0, 16}), (Steps{0, 1}));
  // Chunks of size 4 in an order that puts all real keys on rank 0, which alone could need rank 1's.
  int64_t order[] = {0, 1, 2, 3};
  EXPECT_EQ(neededRingSteps(RingSequence{2, 8, order, true, 1, 8}), (Steps{0}));
}

} // namespace
