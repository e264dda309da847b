//===- IndexSharding.cpp - Gathers and scatters: sharding rules -----------===//
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

} // namespace

/// Dimensions of the indices and of a row pass. A shard of the rows reads zeros in place of the others.
ShardingRule TakeOp::getShardingRule() {
  Rule rule(*this);
  rule.sum({Rule::operand(0, 0)});
  int64_t indexRank = rankOf(getIndices());
  for (int64_t dim : llvm::seq(indexRank))
    rule.pass({Rule::operand(1, dim), Rule::result(0, dim)});
  for (int64_t dim : llvm::seq<int64_t>(1, rankOf(getTable())))
    rule.pass({Rule::operand(0, dim), Rule::result(0, indexRank + dim - 1)});
  rule.linear({0});
  return rule.build();
}

/// Dimensions of the indices are summed over. Row r of the initial value is row r of the result; a shard of the rows
/// drops the updates of the others.
ShardingRule ScatterAddOp::getShardingRule() {
  Rule rule(*this);
  int64_t indexRank = rankOf(getIndices());
  for (int64_t dim : llvm::seq(indexRank))
    rule.sum({Rule::operand(0, dim), Rule::operand(1, dim)});
  SmallVector<Rule::Dim> rows = {Rule::result(0, 0)};
  if (getInit())
    rows.push_back(Rule::operand(2, 0));
  rule.pass(rows);
  for (int64_t dim : llvm::seq<int64_t>(1, rankOf(getResult()))) {
    SmallVector<Rule::Dim> dims = {Rule::operand(1, indexRank + dim - 1), Rule::result(0, dim)};
    if (getInit())
      dims.push_back(Rule::operand(2, dim));
    rule.pass(dims);
  }
  rule.linear({1});
  if (getInit())
    rule.addend(2);
  return rule.build();
}

ShardingRule TakeAlongOp::getShardingRule() {
  Rule rule(*this);
  auto input = cast<RankedTensorType>(getInput().getType()), result = cast<RankedTensorType>(getResult().getType());
  for (int64_t dim : llvm::seq(result.getRank())) {
    if (dim == static_cast<int64_t>(getDim()))
      rule.pass({Rule::operand(1, dim), Rule::result(0, dim)});
    else if (input.getDimSize(dim) == result.getDimSize(dim))
      rule.pass({Rule::operand(0, dim), Rule::operand(1, dim), Rule::result(0, dim)});
  }
  rule.linear({0});
  return rule.build();
}

ShardingRule ScatterAddAlongOp::getShardingRule() {
  Rule rule(*this);
  auto updates = cast<RankedTensorType>(getUpdates().getType()), result = cast<RankedTensorType>(getResult().getType());
  for (int64_t dim : llvm::seq(result.getRank())) {
    if (dim == static_cast<int64_t>(getDim()))
      rule.sum({Rule::operand(0, dim), Rule::operand(1, dim)});
    else if (updates.getDimSize(dim) == result.getDimSize(dim))
      rule.pass({Rule::operand(0, dim), Rule::operand(1, dim), Rule::result(0, dim)});
  }
  rule.linear({1});
  return rule.build();
}
