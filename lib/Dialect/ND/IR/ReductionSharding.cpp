//===- ReductionSharding.cpp - Reduction operations: sharding rules ---===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "nd/Dialect/ND/IR/ND.h"

using namespace mlir;
using namespace nd;

ShardingRule DotGeneralOp::getShardingRule() { return {}; }

ShardingRule ReduceOp::getShardingRule() { return {}; }

ShardingRule ArgMaxOp::getShardingRule() { return {}; }

ShardingRule TopKOp::getShardingRule() { return {}; }

ShardingRule CumSumOp::getShardingRule() { return {}; }
