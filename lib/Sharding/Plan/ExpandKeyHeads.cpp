//===- ExpandKeyHeads.cpp - kv heads become copies ------------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Padding/PadDimensions.h"
#include "Padding/PaddingMasks.h"
#include "Plan/ContextPlan.h"
#include "Plan/KeyHeadCopies.h"
#include "Plan/KeyHeads.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "nd/Dialect/ND/IR/Builders.h"
#include "nd/Dialect/ND/IR/Names.h"
#include "nd/Dialect/ND/IR/Signature.h"

using namespace mlir;
using namespace nd;

namespace {

using Id = DimensionClasses::Id;

template <typename AttentionLike> KeyHeads headsOf(AttentionLike op, int64_t ranks) {
  return {op.getQuery().getType().getDimSize(1), op.getKey().getType().getDimSize(1), ranks};
}

/// Calls `visit` with each attention and each gradient of one.
void forEachAttention(Program &program, llvm::function_ref<void(AttentionOp)> visit,
                      llvm::function_ref<void(AttentionGradOp)> visitGradient) {
  for (Operation &op : program.getBody()) {
    if (auto attention = dyn_cast<AttentionOp>(op))
      visit(attention);
    else if (auto gradient = dyn_cast<AttentionGradOp>(op))
      visitGradient(gradient);
  }
}

/// Whether the values that have kv heads are used as copies can be.
class CopyUses {
public:
  CopyUses(Program &program, const Analysis &analysis, const llvm::DenseSet<Id> &heads)
      : program(program), analysis(analysis), classes(analysis.getClasses()), heads(heads) {}

  bool areCopies() {
    func::FuncOp function = program.function;
    for (BlockArgument argument : program.getBody().getArguments())
      if (has(argument) &&
          (names::argKind(function, argument.getArgNumber()) == names::kind::kInput || !isMajor(argument)))
        return false;
    for (const Analysis::Step &step : analysis.getSteps())
      if (!analysis.isUpdate(step.op) && !visit(step))
        return false;
    for (auto [index, value] : llvm::enumerate(program.getReturn()->getOperands())) {
      StringRef kind = names::resultKind(function, index);
      bool isOutput = kind == names::kind::kOutput || kind == names::kind::kLogits || kind == names::kind::kMetric;
      if (has(value) && (isOutput || kind.empty()))
        return false;
    }
    return true;
  }

private:
  bool isOfHeads(ArrayRef<Id> ids) const {
    return llvm::any_of(ids, [&](Id id) { return heads.contains(id); });
  }
  bool has(Value value) const {
    return llvm::any_of(llvm::seq(tensorTypeOf(value).getRank()),
                        [&](int64_t dim) { return isOfHeads(classes.getDim(value, dim)); });
  }
  /// Heads are one dimension, or the major part of one.
  bool isMajor(Value value) const {
    return llvm::all_of(llvm::seq(tensorTypeOf(value).getRank()), [&](int64_t dim) {
      DimensionClasses::Ids ids = classes.getDim(value, dim);
      return ids.empty() || !isOfHeads(ArrayRef<Id>(ids).drop_front());
    });
  }

  bool visit(const Analysis::Step &step) {
    Operation *op = step.op;
    SmallVector<unsigned> partial;
    for (auto [index, operand] : llvm::enumerate(op->getOperands()))
      if (parts.contains(operand))
        partial.push_back(index);
    if (auto gradient = dyn_cast<AttentionGradOp>(op)) {
      for (Value result : {gradient.getKeyGrad(), gradient.getValueGrad()})
        if (has(result))
          parts.insert(result);
      return partial.empty();
    }
    if (isa<AttentionOp>(op))
      return partial.empty();
    bool sums = false;
    for (auto [index, factor] : llvm::enumerate(step.rule.factors)) {
      if (!isOfHeads(classes.getFactor(op, index)))
        continue;
      if (factor.kind == FactorKind::NeedReplication || isa<IotaOp>(op))
        return false;
      sums |= factor.kind == FactorKind::Reduction;
    }
    if (partial.empty())
      return !sums;
    if (!isLinear(step, partial))
      return false;
    for (Value result : op->getResults())
      if (has(result))
        parts.insert(result);
    return true;
  }

  /// Whether the sum over copies of what the operation yields for each part is what it yields for their sum; the other
  /// operands are the same for all copies. Rounding a part is no more than rounding what a rank computes.
  static bool isLinear(const Analysis::Step &step, ArrayRef<unsigned> partial) {
    if (isa<arith::TruncFOp>(step.op))
      return true;
    if (isa<arith::MulFOp>(step.op))
      return partial.size() == 1;
    if (isa<arith::DivFOp>(step.op))
      return partial.size() == 1 && partial.front() == 0;
    return llvm::is_contained(step.rule.linear, SmallVector<unsigned, 2>(partial));
  }

  Program &program;
  const Analysis &analysis;
  const DimensionClasses &classes;
  const llvm::DenseSet<Id> &heads;
  llvm::DenseSet<Value> parts; ///< what is a part of a sum over copies
};

class Expander {
public:
  Expander(Program &program, int64_t ranks) : program(program), ranks(ranks) {}

  LogicalResult run() {
    auto mark = [&](auto op) {
      if (KeyHeads heads = headsOf(op, ranks); heads.areShared() && !op.getKvMap())
        shared.push_back(op);
    };
    forEachAttention(program, mark, mark);
    if (shared.empty())
      return success();
    setMaps(false);
    FailureOr<Analysis> analysis = Analysis::get(program);
    if (failed(analysis))
      return failure();
    if (!findClasses(*analysis)) {
      for (Operation *op : shared)
        op->removeAttr("kv_map"), op->removeAttr("head_axes");
      return success();
    }
    PaddedSizes sizes = queryHeads;
    for (auto [id, heads] : keyHeads)
      sizes[id] = ranks * heads.slots();
    describeStorage(analysis->getClasses());
    llvm::DenseSet<Id> sequence = findSequence(program, *analysis);
    if (failed(padDimensions(program, *analysis, sizes, sequence)))
      return failure();
    setMaps(true);
    return maskPadding(program, *analysis, queryHeads, sequence, storedOrder(program));
  }

private:
  /// Before dimensions have their new sizes, an empty list of head_axes keeps query heads and kv heads apart in the
  /// attention's rule; after that, the map does.
  void setMaps(bool isExpanded) {
    Builder builder(program.function.getContext());
    for (Operation *op : shared) {
      auto [it, isNew] = maps.try_emplace(op);
      if (isNew) {
        auto attention = dyn_cast<AttentionOp>(op);
        it->second = attention ? headsOf(attention, ranks) : headsOf(cast<AttentionGradOp>(op), ranks);
      }
      const KeyHeads &heads = it->second;
      if (isExpanded) {
        op->setAttr("kv_map", builder.getDenseI64ArrayAttr(heads.queryMap()));
        op->removeAttr("head_axes");
      } else {
        SmallVector<int64_t> map =
            llvm::map_to_vector(llvm::seq(heads.queries), [&](int64_t query) { return query / heads.group(); });
        op->setAttr("kv_map", builder.getDenseI64ArrayAttr(map));
        op->setAttr("head_axes", builder.getArrayAttr({}));
      }
    }
  }

  /// The classes of query heads and of kv heads; false where they are not apart, or are used otherwise.
  bool findClasses(const Analysis &analysis) {
    const DimensionClasses &classes = analysis.getClasses();
    llvm::DenseSet<Id> queries, keys;
    for (Operation *op : shared) {
      const KeyHeads &heads = maps[op];
      auto single = [&](Value value) -> std::optional<Id> {
        DimensionClasses::Ids ids = classes.getDim(value, 1);
        return ids.size() == 1 && !classes.isTangled(ids.front()) ? std::optional(ids.front()) : std::nullopt;
      };
      std::optional<Id> query = single(op->getOperand(0));
      if (!query)
        return false;
      queries.insert(*query);
      if (int64_t padded = ranks * heads.ownQueries(); padded != heads.queries)
        queryHeads[*query] = padded;
      if (heads.keys == 1) // the one head that all ranks use is replicated
        continue;
      for (Value keysOrValues : {op->getOperand(1), op->getOperand(2)}) {
        std::optional<Id> key = single(keysOrValues);
        if (!key || (keyHeads.contains(*key) && keyHeads.find(*key)->second.queries != heads.queries))
          return false;
        keyHeads.try_emplace(*key, heads);
        keys.insert(*key);
      }
    }
    return llvm::none_of(keys, [&](Id id) { return queries.contains(id); }) &&
           CopyUses(program, analysis, keys).areCopies();
  }

  /// What is stored for each rank, before types change.
  void describeStorage(const DimensionClasses &classes) {
    func::FuncOp function = program.function;
    SignatureAttrs attributes(function);
    auto storage = [&](Value value) -> DictionaryAttr {
      for (int64_t dim : llvm::seq(tensorTypeOf(value).getRank())) {
        DimensionClasses::Ids ids = classes.getDim(value, dim);
        auto it = ids.empty() ? keyHeads.end() : keyHeads.find(ids.front());
        if (it != keyHeads.end())
          return StoredHeads{dim, tensorTypeOf(value).getDimSize(dim) / it->second.keys, it->second.table()}.toAttr(
              function.getContext());
      }
      return {};
    };
    for (BlockArgument argument : program.getBody().getArguments())
      if (DictionaryAttr copies = storage(argument))
        attributes.setArg(argument.getArgNumber(), names::kCopies, copies);
    for (auto [index, value] : llvm::enumerate(program.getReturn()->getOperands()))
      if (DictionaryAttr copies = storage(value))
        attributes.setResult(index, names::kCopies, copies);
  }

  Program &program;
  int64_t ranks;
  SmallVector<Operation *> shared;
  llvm::DenseMap<Operation *, KeyHeads> maps;
  PaddedSizes queryHeads;
  llvm::DenseMap<Id, KeyHeads> keyHeads;
};

} // namespace

LogicalResult nd::expandKeyHeads(Program &program, int64_t ranks) {
  return ranks == 1 ? success() : Expander(program, ranks).run();
}
