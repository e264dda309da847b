//===- StructuralSharding.cpp - Structural operations: sharding rules -----===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "ShardingRuleBuilder.h"
#include "nd/Dialect/ND/IR/Builders.h"
#include <numeric>

using namespace mlir;
using namespace nd;

using Rule = ShardingRuleBuilder;

ShardingRule BroadcastOp::getShardingRule() {
  Rule rule(*this);
  ArrayRef<int64_t> dims = getDims();
  for (int64_t dim : llvm::seq<int64_t>(getResult().getType().getRank())) {
    const auto *it = llvm::find(dims, dim);
    if (it == dims.end())
      rule.pass({Rule::result(0, dim)}); // a new dimension: any shard of it holds the same elements
    else
      rule.pass({Rule::operand(0, it - dims.begin()), Rule::result(0, dim)});
  }
  rule.linear({0});
  return rule.build();
}

namespace {

/// Walks the two shapes from the major end. A divisor that both sides have in front of what is left becomes a shared
/// factor; where they have none in common, the dimensions up to the next common boundary need replication.
///
///   [2, 3, 4] -> [6, 4]   i0=2 i1=3 i2=4     ([i0, i1, i2]) -> ([i0*i1, i2])
///   [6, 4]    -> [4, 6]   i0=2 is shared, 3x4 against 2x6 is not
void factorReshape(Rule &rule, ArrayRef<int64_t> from, ArrayRef<int64_t> to) {
  struct Side {
    ArrayRef<int64_t> shape;
    bool isResult;
    int64_t dim = -1;
    int64_t rest = 1; ///< extent of `dim` that no factor covers yet

    Rule::Dim current() const { return {isResult, 0, dim}; }
    /// Moves to the next dimension that is not of size 1; false at the end.
    bool advance() {
      while (rest == 1 && dim + 1 < static_cast<int64_t>(shape.size()))
        rest = shape[++dim];
      return rest != 1;
    }
  };
  Side in{from, false}, out{to, true};
  auto isolate = [&](Side &side) {
    rule.append(side.current(), rule.addFactor(side.rest, FactorKind::NeedReplication));
    return std::exchange(side.rest, 1);
  };
  while (in.advance() && out.advance()) {
    int64_t common = std::gcd(in.rest, out.rest);
    if (common > 1) {
      int64_t factor = rule.addFactor(common, FactorKind::PassThrough);
      rule.append(in.current(), factor);
      rule.append(out.current(), factor);
      in.rest /= common;
      out.rest /= common;
    }
    // Both rests above 1 means that neither divides the other: nothing is shared before their products meet.
    if (in.rest == 1 || out.rest == 1)
      continue;
    int64_t inProduct = isolate(in), outProduct = isolate(out);
    while (inProduct != outProduct) {
      Side &behind = inProduct < outProduct ? in : out;
      if (!behind.advance())
        return;
      (behind.isResult ? outProduct : inProduct) *= isolate(behind);
    }
  }
}

} // namespace

ShardingRule ReshapeOp::getShardingRule() {
  Rule rule(*this);
  factorReshape(rule, getInput().getType().getShape(), getResult().getType().getShape());
  rule.linear({0});
  return rule.build();
}

ShardingRule TransposeOp::getShardingRule() {
  Rule rule(*this);
  for (auto [dim, source] : llvm::enumerate(getPermutation()))
    rule.pass({Rule::operand(0, source), Rule::result(0, dim)});
  rule.linear({0});
  return rule.build();
}

ShardingRule SliceOp::getShardingRule() {
  Rule rule(*this);
  auto input = getInput().getType(), result = getResult().getType();
  for (int64_t dim : llvm::seq(input.getRank()))
    if (input.getDimSize(dim) == result.getDimSize(dim))
      rule.pass({Rule::operand(0, dim), Rule::result(0, dim)});
  rule.linear({0});
  return rule.build();
}

ShardingRule PadOp::getShardingRule() {
  Rule rule(*this);
  auto input = getInput().getType(), result = getResult().getType();
  for (int64_t dim : llvm::seq(input.getRank()))
    if (input.getDimSize(dim) == result.getDimSize(dim))
      rule.pass({Rule::operand(0, dim), Rule::result(0, dim)});
  // Around a partial sum only zeros are themselves a partial sum of the padding.
  if (isZeroSplat(getValue()))
    rule.linear({0});
  return rule.build();
}

ShardingRule ConcatOp::getShardingRule() {
  Rule rule(*this);
  SmallVector<unsigned> all = llvm::to_vector(llvm::seq<unsigned>(getInputs().size()));
  for (int64_t dim : llvm::seq<int64_t>(getResult().getType().getRank())) {
    if (dim == static_cast<int64_t>(getDim()))
      continue;
    SmallVector<Rule::Dim> dims = {Rule::result(0, dim)};
    for (unsigned operand : all)
      dims.push_back(Rule::operand(operand, dim));
    rule.pass(dims);
  }
  rule.linear(all);
  return rule.build();
}

ShardingRule IotaOp::getShardingRule() {
  Rule rule(*this);
  for (int64_t dim : llvm::seq<int64_t>(getResult().getType().getRank()))
    rule.pass({Rule::result(0, dim)});
  return rule.build();
}
