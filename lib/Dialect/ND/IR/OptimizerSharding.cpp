//===- OptimizerSharding.cpp - Optimizer operations: sharding rules ---===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "nd/Dialect/ND/IR/ND.h"

using namespace mlir;
using namespace nd;

ShardingRule AdamWOp::getShardingRule() { return {}; }

ShardingRule SgdOp::getShardingRule() { return {}; }
