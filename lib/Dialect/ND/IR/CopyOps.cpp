//===- CopyOps.cpp - Sums over copies: verifiers and sharding rules -------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "ShardingRuleBuilder.h"
#include "Verify.h"
#include "nd/Dialect/ND/IR/Copies.h"

using namespace mlir;
using namespace nd;

#define GET_OP_CLASSES
#include "nd/Dialect/ND/IR/NDCopyOps.cpp.inc"

using Rule = ShardingRuleBuilder;

namespace {

/// `stored` has shards of `P` elements in `dim`; `summed` has [groups, P] there.
template <typename CopiesOp>
LogicalResult verifyCopies(CopiesOp op, StringRef name, RankedTensorType stored, StringRef otherName,
                           RankedTensorType summed) {
  int64_t dim = op.getDim(), unit = op.getUnit(), units = op.getUnits();
  if (failed(verify::dimInRange(op, "dim", dim, stored.getRank())) ||
      failed(verify::rank(op, otherName, summed, stored.getRank() + 1, "one more than that of " + name.str())))
    return failure();
  ArrayRef<int64_t> groups = op.getGroups();
  int64_t size = summed.getDimSize(dim + 1), count = summed.getDimSize(dim);
  if (unit < 1 || units < 1 || groups.empty() || groups.size() % units != 0)
    return op.emitOpError() << "expected groups of a number of shards with " << units << " units of " << unit
                            << " elements each but found " << groups.size() << " groups";
  for (int64_t group : groups)
    if (group < -1 || group >= count)
      return op.emitOpError() << "expected groups in [-1, " << count << "), by dimension " << dim << " of " << otherName
                              << ", but found " << group;
  // A rank has some of the shards, and some of the units of each.
  int64_t shards = groups.size() / units, ownUnits = size / unit;
  bool isRank = op.getShardAxes() || op.getUnitAxes();
  bool fits = size > 0 && size % unit == 0 && (isRank ? units % ownUnits == 0 : ownUnits == units);
  SmallVector<int64_t> expected(summed.getShape());
  expected.erase(expected.begin() + dim);
  int64_t own = fits && stored.getDimSize(dim) % size == 0 ? stored.getDimSize(dim) / size : 0;
  if (own == 0 || (isRank ? shards % own != 0 : own != shards))
    return op.emitOpError() << "expected " << shards << " shards of " << units << " units of " << unit
                            << " elements in dimension " << dim << " of " << name << ", and a shard in dimension "
                            << dim + 1 << " of " << otherName << ", but found " << stored << " and " << summed;
  expected[dim] = own * size;
  return verify::shape(op, name, stored, expected);
}

} // namespace

LogicalResult SumCopiesOp::verify() {
  return verifyCopies(*this, "input", getInput().getType(), "result", getResult().getType());
}

LogicalResult MakeCopiesOp::verify() {
  return verifyCopies(*this, "result", getResult().getType(), "input", getInput().getType());
}

namespace {

/// The stored dimension is shards times places in a shard; the other tensor has the places alone, beside its groups.
ShardingRule copiesRule(Operation *op, int64_t dim, bool storedIsResult, FactorKind shards) {
  Rule rule(op);
  auto stored = [&](int64_t d) { return Rule::Dim{storedIsResult, 0, d}; };
  auto summed = [&](int64_t d) { return Rule::Dim{!storedIsResult, 0, d}; };
  auto storedType = cast<RankedTensorType>((storedIsResult ? op->getResult(0) : op->getOperand(0)).getType());
  auto summedType = cast<RankedTensorType>((storedIsResult ? op->getOperand(0) : op->getResult(0)).getType());
  int64_t size = summedType.getDimSize(dim + 1);
  rule.append(stored(dim), rule.addFactor(storedType.getDimSize(dim) / size, shards));
  int64_t places = rule.addFactor(size, FactorKind::PassThrough);
  rule.append(stored(dim), places);
  rule.append(summed(dim + 1), places);
  for (int64_t other : llvm::seq(storedType.getRank()))
    if (other != dim)
      rule.pass({stored(other), summed(other < dim ? other : other + 1)});
  if (!storedIsResult)
    rule.linear({0});
  return rule.build();
}

} // namespace

/// Linear: what is partial over other axes is reduced together with the copies.
ShardingRule SumCopiesOp::getShardingRule() { return copiesRule(*this, getDim(), false, FactorKind::Reduction); }

/// Sums have to be complete before they are handed out.
ShardingRule MakeCopiesOp::getShardingRule() { return copiesRule(*this, getDim(), true, FactorKind::PassThrough); }
