//===- CompositeSharding.cpp - Composites: sharding rules -----------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "ShardingRuleBuilder.h"

using namespace mlir;
using namespace nd;

using Rule = ShardingRuleBuilder;

namespace {

int64_t rankOf(Value value) { return cast<RankedTensorType>(value.getType()).getRank(); }

/// Rows of operand 0 pass to every result; the last dimension is needed as a whole, by parameters of that size too.
ShardingRule normRule(Operation *op) {
  Rule rule(op);
  int64_t last = rankOf(op->getOperand(0)) - 1;
  for (int64_t dim : llvm::seq(last)) {
    SmallVector<Rule::Dim> dims = {Rule::operand(0, dim)};
    for (unsigned result : llvm::seq(op->getNumResults()))
      dims.push_back(Rule::result(result, dim));
    rule.pass(dims);
  }
  SmallVector<Rule::Dim> width = {Rule::operand(0, last), Rule::result(0, last)};
  for (unsigned operand : llvm::seq(1u, op->getNumOperands()))
    width.push_back(Rule::operand(operand, 0));
  rule.share(FactorKind::NeedReplication, width);
  return rule.build();
}

} // namespace

ShardingRule SoftmaxOp::getShardingRule() {
  Rule rule(*this);
  for (int64_t dim : llvm::seq(rankOf(getInput())))
    if (dim != static_cast<int64_t>(getDim()))
      rule.pass({Rule::operand(0, dim), Rule::result(0, dim)});
  return rule.build();
}

ShardingRule LayerNormOp::getShardingRule() { return normRule(*this); }

ShardingRule RmsNormOp::getShardingRule() { return normRule(*this); }

ShardingRule RopeOp::getShardingRule() {
  Rule rule(*this);
  rule.pass({Rule::operand(0, 0), Rule::operand(1, 0), Rule::operand(2, 0), Rule::result(0, 0)});
  rule.pass({Rule::operand(0, 1), Rule::result(0, 1)});
  rule.pass({Rule::operand(0, 2), Rule::operand(1, 1), Rule::operand(2, 1), Rule::result(0, 2)});
  rule.linear({0});
  return rule.build();
}

ShardingRule SoftmaxCrossEntropyOp::getShardingRule() {
  Rule rule(*this);
  for (int64_t dim : llvm::seq(rankOf(getLabels())))
    rule.pass({Rule::operand(0, dim), Rule::operand(1, dim), Rule::result(0, dim), Rule::result(1, dim)});
  return rule.build();
}

ShardingRule SoftmaxCrossEntropyGradOp::getShardingRule() {
  Rule rule(*this);
  int64_t classes = rankOf(getLabels());
  for (int64_t dim : llvm::seq(classes))
    rule.pass({Rule::operand(0, dim), Rule::operand(1, dim), Rule::operand(2, dim), Rule::operand(3, dim),
               Rule::result(0, dim)});
  rule.share(FactorKind::NeedReplication, {Rule::operand(0, classes), Rule::result(0, classes)});
  rule.linear({3});
  return rule.build();
}

ShardingRule DropoutOp::getShardingRule() {
  ShardingRule rule = elementwiseRule(*this);
  rule.linear = {{0}};
  return rule;
}
