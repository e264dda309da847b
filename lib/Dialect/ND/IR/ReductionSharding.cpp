//===- ReductionSharding.cpp - Contractions and reductions: sharding rules ===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "ShardingRuleBuilder.h"

using namespace mlir;
using namespace nd;

using Rule = ShardingRuleBuilder;

namespace {

/// Every dimension but `dim` passes from operand 0 to all results of that rank.
void passAllBut(Rule &rule, Operation *op, int64_t dim) {
  int64_t rank = cast<RankedTensorType>(op->getOperand(0).getType()).getRank();
  for (int64_t other : llvm::seq(rank)) {
    if (other == dim)
      continue;
    SmallVector<Rule::Dim> dims = {Rule::operand(0, other)};
    for (unsigned result : llvm::seq(op->getNumResults()))
      dims.push_back(Rule::result(result, other));
    rule.pass(dims);
  }
}

} // namespace

ShardingRule DotGeneralOp::getShardingRule() {
  Rule rule(*this);
  int64_t next = 0;
  for (auto [lhs, rhs] : llvm::zip_equal(getLhsBatch(), getRhsBatch()))
    rule.pass({Rule::operand(0, lhs), Rule::operand(1, rhs), Rule::result(0, next++)});
  for (int64_t dim : getLhsFree())
    rule.pass({Rule::operand(0, dim), Rule::result(0, next++)});
  for (int64_t dim : getRhsFree())
    rule.pass({Rule::operand(1, dim), Rule::result(0, next++)});
  for (auto [lhs, rhs] : llvm::zip_equal(getLhsContract(), getRhsContract()))
    rule.sum({Rule::operand(0, lhs), Rule::operand(1, rhs)});
  rule.linear({0});
  rule.linear({1});
  return rule.build();
}

ShardingRule ReduceOp::getShardingRule() {
  Rule rule(*this);
  int64_t next = 0;
  for (int64_t dim : llvm::seq<int64_t>(getInput().getType().getRank())) {
    if (llvm::is_contained(getDims(), dim))
      rule.share(FactorKind::Reduction, {Rule::operand(0, dim)}, getKind());
    else
      rule.pass({Rule::operand(0, dim), Rule::result(0, next++)});
  }
  if (getKind() == ReductionKind::sum)
    rule.linear({0});
  return rule.build();
}

ShardingRule ArgMaxOp::getShardingRule() {
  Rule rule(*this);
  int64_t next = 0;
  for (int64_t dim : llvm::seq<int64_t>(cast<RankedTensorType>(getInput().getType()).getRank()))
    if (dim != static_cast<int64_t>(getDim()))
      rule.pass({Rule::operand(0, dim), Rule::result(0, next++)});
  return rule.build();
}

ShardingRule TopKOp::getShardingRule() {
  Rule rule(*this);
  passAllBut(rule, *this, cast<RankedTensorType>(getInput().getType()).getRank() - 1);
  return rule.build();
}

ShardingRule CumSumOp::getShardingRule() {
  Rule rule(*this);
  passAllBut(rule, *this, getDim());
  rule.linear({0});
  return rule.build();
}

ShardingRule AsPartialOp::getShardingRule() { return elementwiseRule(*this); }
