//===- CompositeSharding.cpp - Composite operations: sharding rules ---===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "nd/Dialect/ND/IR/ND.h"

using namespace mlir;
using namespace nd;

ShardingRule SoftmaxOp::getShardingRule() { return {}; }

ShardingRule LayerNormOp::getShardingRule() { return {}; }

ShardingRule RmsNormOp::getShardingRule() { return {}; }

ShardingRule RopeOp::getShardingRule() { return {}; }

ShardingRule AttentionOp::getShardingRule() { return {}; }

ShardingRule AttentionGradOp::getShardingRule() { return {}; }

ShardingRule SoftmaxCrossEntropyOp::getShardingRule() { return {}; }

ShardingRule SoftmaxCrossEntropyGradOp::getShardingRule() { return {}; }

ShardingRule DropoutOp::getShardingRule() { return {}; }
