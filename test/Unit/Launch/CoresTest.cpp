//===- CoresTest.cpp - Cores that ranks may run on ------------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "../../../lib/Launch/Cores.h"
#include "llvm/ADT/STLExtras.h"
#include "gtest/gtest.h"

using namespace nd::launch;

TEST(Cores, LimitsOfControlGroups) {
  EXPECT_EQ(parseCoreLimit("150000", "100000"), 1.5);
  EXPECT_EQ(parseCoreLimit("max", "100000"), 0); // version 2: no limit
  EXPECT_EQ(parseCoreLimit("-1", "100000"), 0);  // version 1: no limit
  EXPECT_EQ(parseCoreLimit("", ""), 0);          // no such file
}

TEST(Cores, NoCoreIsClaimedTwice) {
  CoreClaims first, second, whole;
  ASSERT_GE(availableCores(), 1);
  EXPECT_FALSE(whole.claim(availableCores() + 1));
  EXPECT_TRUE(whole.get().empty());
  if (!first.claim(1))
    return; // jobs of others have all of them
  ASSERT_EQ(first.get().size(), 1u);
  int core = first.get().front();
  if (second.claim(1)) {
    EXPECT_NE(second.get().front(), core);
  }
  whole.claim(availableCores()); // succeeds where a control group leaves cores idle
  EXPECT_FALSE(llvm::is_contained(whole.get(), core));
  second.release();
  first.release();
  EXPECT_TRUE(first.get().empty());
  EXPECT_TRUE(second.claim(1));
}
