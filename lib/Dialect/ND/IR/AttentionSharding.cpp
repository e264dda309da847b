//===- AttentionSharding.cpp - Attention: sharding rules ------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Batch and heads pass. Query head h reads key head h / (Hq / Hkv), so the query heads are key heads times heads of a
// group; a kv_map divides into blocks of query heads that read one block of key heads, times the heads of a block. The
// queries' sequence passes: every query sees the keys whole. In a ring queries and keys are shards of one sequence.
//
// Gradients of keys and values lack what only the queries have, the heads of a group and the queries' sequence: they
// are partial sums over these.
//
//===----------------------------------------------------------------------===//

#include "ShardingRuleBuilder.h"
#include <numeric>

using namespace mlir;
using namespace nd;

using Rule = ShardingRuleBuilder;

namespace {

/// The largest number of equal blocks so that the query heads of a block read key heads of the same block only.
int64_t countBlocks(ArrayRef<int64_t> map, int64_t heads, int64_t keyHeads) {
  for (int64_t blocks = std::gcd(heads, keyHeads); blocks > 1; --blocks) {
    if (heads % blocks != 0 || keyHeads % blocks != 0)
      continue;
    bool local = true;
    for (auto [head, entry] : llvm::enumerate(map))
      local &= entry < 0 || entry / (keyHeads / blocks) == static_cast<int64_t>(head) / (heads / blocks);
    if (local)
      return blocks;
  }
  return 1;
}

template <typename AttentionLike> class AttentionRule {
public:
  explicit AttentionRule(AttentionLike op)
      : op(op), rule(op), heads(op.getQuery().getType().getDimSize(1)), keyHeads(op.getKey().getType().getDimSize(1)) {}

  /// [B, Hq, S, ...]
  void queries(OperandRange operand) {
    if (!operand.empty())
      add(queryRows, Rule::operand(operand.getBeginOperandIndex(), 0));
  }
  void queriesResult(unsigned result) { add(queryRows, Rule::result(result, 0)); }
  /// [B, Hkv, T, ...]
  void keys(OperandRange operand) { add(keyRows, Rule::operand(operand.getBeginOperandIndex(), 0)); }
  void keysResult(unsigned result) { add(keyRows, Rule::result(result, 0)), keyResults.push_back(result); }
  /// [B, ...], or nothing when the operand is absent.
  void perSequence(OperandRange operand) {
    if (!operand.empty())
      batch.push_back(Rule::operand(operand.getBeginOperandIndex(), 0));
  }
  /// A mask that broadcasts: its dimensions of size 1 take no part beside a batch or heads that are more than one.
  void mask(OperandRange operand) {
    if (operand.empty())
      return;
    perSequence(operand);
    if (cast<RankedTensorType>(operand.front().getType()).getDimSize(1) == heads)
      maskHeads.push_back(Rule::operand(operand.getBeginOperandIndex(), 1));
  }

  ShardingRule build() {
    rule.pass(batch);
    addHeads();
    if (op.isRing() || op.getKeyShards() != 1)
      rule.pass(dimsOf(2, {queryRows, keyRows}));
    else
      sumIntoKeys(passed(op.getQuery().getType().getDimSize(2), dimsOf(2, {queryRows})));
    return rule.build(); // the keys' sequence and the head's width need replication
  }

private:
  using Dims = SmallVector<Rule::Dim>;

  void add(Dims &rows, Rule::Dim tensor) {
    batch.push_back(tensor);
    rows.push_back(tensor);
  }
  static Dims dimsOf(int64_t dim, ArrayRef<ArrayRef<Rule::Dim>> lists) {
    Dims dims;
    for (ArrayRef<Rule::Dim> tensors : lists)
      for (Rule::Dim tensor : tensors)
        dims.push_back({tensor.isResult, tensor.tensor, dim});
    return dims;
  }

  int64_t passed(int64_t size, ArrayRef<Rule::Dim> dims) {
    int64_t factor = rule.addFactor(size, FactorKind::PassThrough);
    for (Rule::Dim dim : dims)
      rule.append(dim, factor);
    return factor;
  }

  void sumIntoKeys(int64_t factor) {
    for (unsigned result : keyResults)
      rule.sumInto(result, factor);
  }

  void addHeads() {
    Dims ofQueries = dimsOf(1, {queryRows}), ofKeys = dimsOf(1, {keyRows});
    llvm::append_range(ofQueries, maskHeads);
    // In a rank's program the map speaks of all ranks' heads: this rank's are one block.
    int64_t blocks = keyHeads;
    if (op.getKvMap())
      blocks = op.getHeadAxes() ? 1 : countBlocks(*op.getKvMap(), heads, keyHeads);
    Dims both = ofQueries;
    llvm::append_range(both, ofKeys);
    passed(blocks, both);
    sumIntoKeys(passed(heads / blocks, ofQueries));
    if (keyHeads != blocks) {
      int64_t rest = rule.addFactor(keyHeads / blocks, FactorKind::NeedReplication);
      for (Rule::Dim dim : ofKeys)
        rule.append(dim, rest);
    }
  }

  AttentionLike op;
  Rule rule;
  int64_t heads, keyHeads;
  Dims batch, queryRows, keyRows, maskHeads;
  SmallVector<unsigned> keyResults;
};

} // namespace

ShardingRule AttentionOp::getShardingRule() {
  AttentionRule<AttentionOp> rule(*this);
  rule.queries(getODSOperands(0));
  rule.queriesResult(0);
  rule.queriesResult(1);
  for (unsigned key : {1, 2})
    rule.keys(getODSOperands(key));
  for (unsigned optional : {3, 4, 5})
    rule.perSequence(getODSOperands(optional));
  rule.mask(getODSOperands(6));
  for (unsigned carry : {7, 8})
    rule.queries(getODSOperands(carry));
  return rule.build();
}

ShardingRule AttentionGradOp::getShardingRule() {
  AttentionRule<AttentionGradOp> rule(*this);
  for (unsigned query : {0, 3, 4, 5})
    rule.queries(getODSOperands(query));
  rule.queriesResult(0);
  for (unsigned key : {1, 2})
    rule.keys(getODSOperands(key));
  for (unsigned key : {1, 2})
    rule.keysResult(key);
  for (unsigned optional : {6, 7, 8})
    rule.perSequence(getODSOperands(optional));
  rule.mask(getODSOperands(9));
  return rule.build();
}
