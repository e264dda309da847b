//===- OptimizerSharding.cpp - Optimizer operations: sharding rules -------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Updates are elementwise in the parameter, its gradient and its state; the scalars have no dimensions. None is linear:
// the gradient has to be reduced.
//
//===----------------------------------------------------------------------===//

#include "ShardingRuleBuilder.h"

using namespace mlir;
using namespace nd;

ShardingRule AdamWOp::getShardingRule() { return elementwiseRule(*this); }

ShardingRule SgdOp::getShardingRule() { return elementwiseRule(*this); }
