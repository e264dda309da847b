//===- OptionsTest.cpp - What --shard says --------------------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "nd/Sharding/Options.h"
#include "gtest/gtest.h"

using nd::ShardingOptions;

namespace {

std::string parsed(llvm::StringRef text, int64_t ranks = 0) {
  llvm::Expected<ShardingOptions> options = ShardingOptions::parse(text, ranks);
  return options ? options->str() : "error: " + llvm::toString(options.takeError());
}

TEST(ShardingOptions, CanonicalOrderAndNames) {
  EXPECT_EQ(parsed("dp4"), "dp4");
  EXPECT_EQ(parsed("tp1,cp1,fsdp1,dp2"), "dp2,fsdp1,cp1,tp1");
  EXPECT_EQ(parsed("dp_shard1, dp_replicate3"), "dp3,fsdp1");
  EXPECT_EQ(parsed(""), "dp1");
  EXPECT_EQ(parsed("", 3), "dp3");
}

TEST(ShardingOptions, RolesFollowTheAxis) {
  llvm::Expected<ShardingOptions> options = ShardingOptions::parse("dp2,fsdp1,cp1,tp1");
  ASSERT_TRUE(static_cast<bool>(options));
  ASSERT_EQ(options->axes.size(), 4u);
  EXPECT_EQ(options->axes[0], (ShardingOptions::Axis{"dp", nd::AxisRole::replicate, 2}));
  EXPECT_EQ(options->axes[1], (ShardingOptions::Axis{"fsdp", nd::AxisRole::shard, 1}));
  EXPECT_EQ(options->axes[2], (ShardingOptions::Axis{"cp", nd::AxisRole::context, 1}));
  EXPECT_EQ(options->axes[3], (ShardingOptions::Axis{"tp", nd::AxisRole::tensor, 1}));
  EXPECT_EQ(options->getNumRanks(), 2);
}

TEST(ShardingOptions, OpenSize) {
  EXPECT_EQ(parsed("dp*", 6), "dp6");
  EXPECT_EQ(parsed("dp2,fsdp*", 2), "dp2,fsdp1");
  EXPECT_EQ(parsed("dp*"), "error: --shard: the size of 'dp*' is open; give --ranks=N");
  EXPECT_EQ(parsed("dp*,fsdp*", 4), "error: --shard: two open sizes in 'dp*,fsdp*'; only one can follow from --ranks");
  EXPECT_EQ(parsed("dp3,fsdp*", 4),
            "error: --shard: --ranks=4 is no multiple of 3, the product of the sizes given in 'dp3,fsdp*'");
}

TEST(ShardingOptions, Errors) {
  EXPECT_EQ(parsed("ep2"), "error: --shard: unknown axis 'ep' in 'ep2'; axes are dp, fsdp, cp and tp, as in dp2,tp4");
  EXPECT_EQ(parsed("2"), "error: --shard: unknown axis '' in '2'; axes are dp, fsdp, cp and tp, as in dp2,tp4");
  EXPECT_EQ(parsed("dp2,"), "error: --shard: unknown axis '' in ''; axes are dp, fsdp, cp and tp, as in dp2,tp4");
  EXPECT_EQ(parsed("dp"), "error: --shard: axis 'dp' has no size; write dp2 for two ranks, or dp* with --ranks");
  EXPECT_EQ(parsed("dp0"), "error: --shard: axis 'dp' has size 0; a size is at least 1");
  EXPECT_EQ(parsed("dp-2"), "error: --shard: axis 'dp' has size -2; a size is at least 1");
  EXPECT_EQ(parsed("dp2x"), "error: --shard: '2x' is no size of axis 'dp'; sizes are whole numbers from 1 on");
  EXPECT_EQ(parsed("dp99999999999999999999"),
            "error: --shard: '99999999999999999999' is no size of axis 'dp'; sizes are whole numbers from 1 on");
  EXPECT_EQ(parsed("dp4294967296,fsdp4294967296"),
            "error: --shard: the sizes of 'dp4294967296,fsdp4294967296' multiply to more ranks than fit in 64 bits");
  EXPECT_EQ(parsed("dp2,dp_replicate2"), "error: --shard: axis 'dp' is given twice in 'dp2,dp_replicate2'");
  EXPECT_EQ(parsed("dp2", 4),
            "error: --shard: 'dp2' is a mesh of 2 ranks but --ranks=4; leave --ranks out, or one size open (dp*)");
  EXPECT_EQ(parsed("dp2", -1), "error: --ranks=-1: a job has at least 1 rank");
}

} // namespace
