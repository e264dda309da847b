//===- FactorShardingTest.cpp - Axes of tensors and axes of factors -------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "nd/Sharding/FactorSharding.h"
#include "gtest/gtest.h"

using namespace nd;
using llvm::ArrayRef;
using llvm::SmallVector;

namespace {

using Dims = SmallVector<AxisList>;

/// y[m, n] = sum over k of x[m, k] w[k, n]; factors m, n, k of sizes 8, 6, 4.
ShardingRule matmul() {
  ShardingRule rule;
  rule.factors = {
      {8, FactorKind::PassThrough}, {6, FactorKind::PassThrough}, {4, FactorKind::Reduction, ReductionKind::sum}};
  rule.operands = {{{0}, {2}}, {{2}, {1}}};
  rule.results = {{{0}, {1}}};
  rule.linear = {{0}, {1}};
  return rule;
}

/// A reshape [4, 6] -> [24].
ShardingRule merge() {
  ShardingRule rule;
  rule.factors = {{4, FactorKind::PassThrough}, {6, FactorKind::PassThrough}};
  rule.operands = {{{0}, {1}}};
  rule.results = {{{0, 1}}};
  rule.linear = {{0}};
  return rule;
}

FactorAxes choose(MeshSizes mesh, const ShardingRule &rule, ArrayRef<TensorSharding> tensors,
                  ArrayRef<int64_t> elements) {
  SmallVector<ShardedTensor> views;
  for (auto [index, sharding] : llvm::enumerate(tensors)) {
    bool isOperand = index < rule.operands.size();
    const auto &factors = isOperand ? rule.operands[index] : rule.results[index - rule.operands.size()];
    views.push_back({&factors, &sharding, elements[index]});
  }
  return chooseFactorAxes(mesh, rule, views);
}

TensorSharding sharded(Dims dims, AxisList unreduced = {}) { return {dims, unreduced, ReductionKind::sum}; }

TEST(FactorSharding, DealsMajorFactorsFirst) {
  ShardingRule rule = merge();
  SmallVector<AxisList> dealt;
  // 4 = 2 * 2, then 3 of 6.
  EXPECT_EQ(dealAxes({2, 2, 3}, rule, {0, 1}, {0, 1, 2}, dealt), 3u);
  EXPECT_EQ(dealt, (SmallVector<AxisList>{{0, 1}, {2}}));
  // 2 of 4 leaves the major factor open, so the axis of size 3 belongs to none.
  EXPECT_EQ(dealAxes({2, 3}, rule, {0, 1}, {0, 1}, dealt), 1u);
  EXPECT_EQ(dealt, (SmallVector<AxisList>{{0}, {}}));
  // 3 does not divide 4.
  EXPECT_EQ(dealAxes({3}, rule, {0, 1}, {0}, dealt), 0u);
}

TEST(FactorSharding, OperandsAgree) {
  FactorAxes axes = choose({2, 3}, matmul(), {sharded({{0}, {}}), sharded({{}, {1}}), sharded({{}, {}})}, {32, 24, 48});
  EXPECT_EQ(axes, (FactorAxes{{0}, {1}, {}}));
  EXPECT_EQ(dimsFor(axes, matmul().results[0]), (Dims{{0}, {1}}));
}

TEST(FactorSharding, LargerTensorHasTheAxis) {
  EXPECT_EQ(choose({2}, matmul(), {sharded({{0}, {}}), sharded({{}, {0}}), sharded({{}, {}})}, {32, 24, 48}),
            (FactorAxes{{0}, {}, {}}));
  EXPECT_EQ(choose({2}, matmul(), {sharded({{0}, {}}), sharded({{}, {0}}), sharded({{}, {}})}, {24, 32, 48}),
            (FactorAxes{{}, {0}, {}}));
}

TEST(FactorSharding, LongerListsContinueShorterOnes) {
  EXPECT_EQ(choose({2, 2}, matmul(), {sharded({{0}, {}}), sharded({{}, {}}), sharded({{0, 1}, {}})}, {32, 24, 16}),
            (FactorAxes{{0, 1}, {}, {}}));
}

TEST(FactorSharding, MinorFactorUnderAnOpenMajorOneIsDropped) {
  // [4, 6] sharded in dimension 1 alone is no contiguous part of [24].
  EXPECT_EQ(choose({2}, merge(), {sharded({{}, {0}}), sharded({{}})}, {24, 24}), (FactorAxes{{}, {}}));
  EXPECT_EQ(choose({4, 2}, merge(), {sharded({{0}, {1}}), sharded({{}})}, {24, 24}), (FactorAxes{{0}, {1}}));
}

TEST(FactorSharding, NeedReplicationHasNoAxes) {
  ShardingRule rule = matmul();
  rule.factors[0].kind = FactorKind::NeedReplication;
  EXPECT_EQ(choose({2}, rule, {sharded({{0}, {}}), sharded({{}, {}}), sharded({{0}, {}})}, {32, 24, 48}),
            (FactorAxes{{}, {}, {}}));
}

UnreducedTransfer transfer(const ShardingRule &rule, ArrayRef<AxisList> axes, ArrayRef<TensorSharding> operands) {
  SmallVector<const TensorSharding *> pointers;
  for (const TensorSharding &operand : operands)
    pointers.push_back(&operand);
  return transferUnreduced(rule, axes, pointers);
}

TEST(UnreducedTransfer, ContractionOverAShardedFactorIsPartial) {
  UnreducedTransfer result = transfer(matmul(), FactorAxes{{}, {}, {1}}, {sharded({{}, {1}}), sharded({{1}, {}})});
  EXPECT_TRUE(result.mustReduce.empty());
  EXPECT_EQ(result.unreduced, (AxisList{1}));
}

TEST(UnreducedTransfer, LinearInOneOperandNotInBoth) {
  TensorSharding partial = sharded({{}, {}}, {0}), whole = sharded({{}, {}});
  EXPECT_EQ(transfer(matmul(), FactorAxes(3), {partial, whole}).unreduced, (AxisList{0}));
  EXPECT_EQ(transfer(matmul(), FactorAxes(3), {partial, partial}).mustReduce, (SmallVector<unsigned>{0, 1}));
}

TEST(UnreducedTransfer, PartialOverAxesThatTheOperationRunsOn) {
  // The other operand is sharded over the axis: partial times shard belong to different elements.
  EXPECT_EQ(transfer(matmul(), FactorAxes{{}, {0}, {}}, {sharded({{}, {}}, {0}), sharded({{}, {0}})}).mustReduce,
            (SmallVector<unsigned>{0}));
  // Over another axis both add up, in mesh order.
  EXPECT_EQ(transfer(matmul(), FactorAxes{{}, {}, {0}}, {sharded({{}, {0}}, {1}), sharded({{0}, {}})}).unreduced,
            (AxisList{0, 1}));
}

TEST(UnreducedTransfer, OneResultCarriesWhatAnotherSums) {
  ShardingRule rule = matmul();
  rule.results.push_back({{1}});
  rule.summed = {{}, {0}};
  UnreducedTransfer result = transfer(rule, FactorAxes{{1}, {}, {0}}, {sharded({{1}, {0}}), sharded({{0}, {}})});
  EXPECT_EQ(result.unreducedOf(0), (AxisList{0}));
  EXPECT_EQ(result.unreducedOf(1), (AxisList{0, 1}));
}

TEST(UnreducedTransfer, AddendsArePartialWhereTheResultIs) {
  ShardingRule rule = matmul();
  rule.operands.push_back({{0}, {1}});
  rule.addends = {2};
  TensorSharding x = sharded({{}, {0}}), w = sharded({{0}, {}}), whole = sharded({{}, {}}),
                 partial = sharded({{}, {}}, {0});
  EXPECT_TRUE(transfer(rule, FactorAxes{{}, {}, {0}}, {x, w, whole}).addendIsWhole);
  UnreducedTransfer both = transfer(rule, FactorAxes{{}, {}, {0}}, {x, w, partial});
  EXPECT_FALSE(both.addendIsWhole);
  EXPECT_TRUE(both.mustReduce.empty());
  EXPECT_EQ(both.unreduced, (AxisList{0}));
  EXPECT_EQ(transfer(rule, FactorAxes(3), {whole, whole, partial}).mustReduce, (SmallVector<unsigned>{2}));
}

} // namespace
