//===- StructuralSharding.cpp - Structural operations: sharding rules ---===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "nd/Dialect/ND/IR/ND.h"

using namespace mlir;
using namespace nd;

ShardingRule BroadcastOp::getShardingRule() { return {}; }

ShardingRule ReshapeOp::getShardingRule() { return {}; }

ShardingRule TransposeOp::getShardingRule() { return {}; }

ShardingRule SliceOp::getShardingRule() { return {}; }

ShardingRule PadOp::getShardingRule() { return {}; }

ShardingRule ConcatOp::getShardingRule() { return {}; }

ShardingRule IotaOp::getShardingRule() { return {}; }
