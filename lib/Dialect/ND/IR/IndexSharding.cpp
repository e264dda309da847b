//===- IndexSharding.cpp - Index operations: sharding rules ---===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "nd/Dialect/ND/IR/ND.h"

using namespace mlir;
using namespace nd;

ShardingRule TakeOp::getShardingRule() { return {}; }

ShardingRule ScatterAddOp::getShardingRule() { return {}; }

ShardingRule TakeAlongOp::getShardingRule() { return {}; }

ShardingRule ScatterAddAlongOp::getShardingRule() { return {}; }
