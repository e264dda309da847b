//===- CollectiveSharding.cpp - Reshards and scales: sharding rules -------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "ShardingRuleBuilder.h"

using namespace mlir;
using namespace nd;

ShardingRule ReshardOp::getShardingRule() { return elementwiseRule(*this); }

ShardingRule ScaleOp::getShardingRule() {
  ShardingRule rule = elementwiseRule(*this);
  rule.linear = {{0}};
  return rule;
}
