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

/// What attention and its gradient share: which dimension of which tensor is the batch, the heads, the queries and the
/// keys. Query head h reads key head h / (Hq / Hkv), so the query heads are key heads times heads of a group.
class AttentionRule {
public:
  explicit AttentionRule(Operation *op, int64_t heads, int64_t kvHeads) : rule(op), heads(heads), kvHeads(kvHeads) {}

  /// [B, Hq, S, ...] without the last dimension's factor.
  void queries(ArrayRef<Rule::Dim> tensors) {
    for (Rule::Dim tensor : tensors)
      batch.push_back({tensor.isResult, tensor.tensor, 0}), queryHeads.push_back({tensor.isResult, tensor.tensor, 1});
  }
  /// [B, Hkv, T, ...]
  void keys(ArrayRef<Rule::Dim> tensors) {
    for (Rule::Dim tensor : tensors)
      batch.push_back({tensor.isResult, tensor.tensor, 0}), keyHeads.push_back({tensor.isResult, tensor.tensor, 1});
  }
  /// [B, ...], or nothing when the operand is absent.
  void perSequence(OperandRange operand) {
    if (!operand.empty())
      batch.push_back(Rule::operand(operand.getBeginOperandIndex(), 0));
  }
  /// A mask that broadcasts: its dimensions of size 1 take no part beside a batch or heads that are more than one.
  void mask(OperandRange operand) {
    if (operand.empty())
      return;
    unsigned index = operand.getBeginOperandIndex();
    batch.push_back(Rule::operand(index, 0));
    if (cast<RankedTensorType>(operand.front().getType()).getDimSize(1) == heads)
      queryHeads.push_back(Rule::operand(index, 1));
  }

  ShardingRule build() {
    rule.pass(batch);
    int64_t kvFactor = rule.addFactor(kvHeads, FactorKind::PassThrough);
    int64_t groupFactor = rule.addFactor(heads / kvHeads, FactorKind::PassThrough);
    for (Rule::Dim dim : keyHeads)
      rule.append(dim, kvFactor);
    for (Rule::Dim dim : queryHeads)
      for (int64_t factor : {kvFactor, groupFactor})
        rule.append(dim, factor);
    return rule.build(); // the sequence and the head's width need replication
  }

private:
  Rule rule;
  int64_t heads, kvHeads;
  SmallVector<Rule::Dim> batch, queryHeads, keyHeads;
};

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

ShardingRule AttentionOp::getShardingRule() {
  AttentionRule rule(*this, getQuery().getType().getDimSize(1), getKey().getType().getDimSize(1));
  rule.queries({Rule::operand(0, 0), Rule::result(0, 0), Rule::result(1, 0)});
  rule.keys({Rule::operand(1, 0), Rule::operand(2, 0)});
  for (unsigned optional : {3, 4, 5})
    rule.perSequence(getODSOperands(optional));
  rule.mask(getODSOperands(6));
  return rule.build();
}

ShardingRule AttentionGradOp::getShardingRule() {
  AttentionRule rule(*this, getQuery().getType().getDimSize(1), getKey().getType().getDimSize(1));
  rule.queries(
      {Rule::operand(0, 0), Rule::operand(3, 0), Rule::operand(4, 0), Rule::operand(5, 0), Rule::result(0, 0)});
  rule.keys({Rule::operand(1, 0), Rule::operand(2, 0), Rule::result(1, 0), Rule::result(2, 0)});
  for (unsigned optional : {6, 7, 8})
    rule.perSequence(getODSOperands(optional));
  rule.mask(getODSOperands(9));
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
