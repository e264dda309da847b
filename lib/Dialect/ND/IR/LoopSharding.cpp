//===- LoopSharding.cpp - Microbatches: sharding rules --------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "ShardingRuleBuilder.h"

using namespace mlir;
using namespace nd;

using Rule = ShardingRuleBuilder;

/// Each rank holds its part of every microbatch: dimension 0 of the operand is not sharded.
ShardingRule MicrobatchOp::getShardingRule() {
  Rule rule(*this);
  for (int64_t dim : llvm::seq(getResult().getType().getRank()))
    rule.pass({Rule::operand(0, dim + 1), Rule::result(0, dim)});
  rule.linear({0});
  return rule.build();
}

ShardingRule AccumulateOp::getShardingRule() {
  ShardingRule rule = elementwiseRule(*this);
  rule.linear = {{0}};
  return rule;
}
