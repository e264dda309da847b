//===- UnmergeDimensions.cpp - Keep batch and sequence apart --------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// One walk in program order. A merge is a reshape whose result dimensions are products of consecutive dimensions of its
// operand. Invariant: whatever was visited reads no merge of tokens that it could do without, and every value that is
// such a merge is known with the tensor that it merges (`merges`). An operation is rewritten by its sharding rule: a
// factor that one operand has in parts gets these parts in all tensors that share it.
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "nd/Dialect/ND/IR/Builders.h"
#include "nd/Dialect/ND/IR/Names.h"
#include "nd/Dialect/ND/Transforms/Passes.h"
#include "llvm/ADT/SmallBitVector.h"

namespace nd {
#define GEN_PASS_DEF_UNMERGEDIMENSIONS
#include "nd/Dialect/ND/Transforms/Passes.h.inc"
} // namespace nd

using namespace mlir;
using namespace nd;

namespace {

using Sizes = SmallVector<int64_t, 2>;

/// A value is `source` with consecutive dimensions multiplied: dimension d of it is those of sizes parts[d].
struct Merge {
  Value source;
  SmallVector<Sizes> parts;
};

/// Where the dimensions of a tensor begin after each became its parts.
struct Expansion {
  SmallVector<Sizes> parts;

  SmallVector<int64_t> shape() const {
    SmallVector<int64_t> all;
    for (const Sizes &part : parts)
      llvm::append_range(all, part);
    return all;
  }
  int64_t first(int64_t dim) const {
    int64_t begin = 0;
    for (const Sizes &part : ArrayRef(parts).take_front(dim))
      begin += part.size();
    return begin;
  }
  /// All new dimensions of these old ones, in order.
  SmallVector<int64_t> expand(ArrayRef<int64_t> dims) const {
    SmallVector<int64_t> all;
    for (int64_t dim : dims)
      llvm::append_range(all, sequence(parts[dim].size(), first(dim)));
    return all;
  }
  /// One number for each new dimension: that of the old one where it is whole, else `otherwise`.
  SmallVector<int64_t> spread(ArrayRef<int64_t> numbers, int64_t otherwise) const {
    SmallVector<int64_t> all;
    for (auto [number, part] : llvm::zip_equal(numbers, parts))
      all.append(part.size(), part.size() == 1 ? number : otherwise);
    return all;
  }
  bool isTrivial() const {
    return llvm::all_of(parts, [](const Sizes &part) { return part.size() == 1; });
  }
};

/// Renumbers the dimensions in an operation's attributes; `operands` and `result` say what became of which.
void renumber(Operation *op, ArrayRef<Expansion> operands, const Expansion &result) {
  llvm::TypeSwitch<Operation *>(op)
      .Case([&](BroadcastOp broadcast) {
        // Dimension i of the operand has the parts of the result's dimension dims[i].
        broadcast.setDims(result.expand(broadcast.getDims()));
      })
      .Case([&](DotGeneralOp dot) {
        dot.setLhsBatch(operands[0].expand(dot.getLhsBatch()));
        dot.setLhsContract(operands[0].expand(dot.getLhsContract()));
        dot.setRhsBatch(operands[1].expand(dot.getRhsBatch()));
        dot.setRhsContract(operands[1].expand(dot.getRhsContract()));
      })
      .Case([&](ReduceOp reduce) { reduce.setDims(operands[0].expand(reduce.getDims())); })
      .Case([&](TransposeOp transpose) { transpose.setPermutation(operands[0].expand(transpose.getPermutation())); })
      .Case([&](SliceOp slice) {
        slice.setStarts(operands[0].spread(slice.getStarts(), 0));
        slice.setStrides(operands[0].spread(slice.getStrides(), 1));
      })
      .Case([&](PadOp pad) {
        pad.setLow(operands[0].spread(pad.getLow(), 0));
        pad.setHigh(operands[0].spread(pad.getHigh(), 0));
        pad.setInterior(operands[0].spread(pad.getInterior(), 0));
      })
      .Case<SoftmaxOp, ConcatOp, CumSumOp, ArgMaxOp, TakeAlongOp>(
          [&](auto along) { along.setDim(operands[0].first(along.getDim())); });
}

/// Whether `renumber` knows the operation, or it has no dimensions in its attributes.
bool canRenumber(Operation *op) {
  return isa<BroadcastOp, DotGeneralOp, ReduceOp, TransposeOp, SliceOp, PadOp, SoftmaxOp, ConcatOp, CumSumOp, ArgMaxOp,
             TakeAlongOp, TakeOp, TopKOp, LayerNormOp, RmsNormOp, DropoutOp, SoftmaxCrossEntropyOp>(op) ||
         (op->hasTrait<OpTrait::Elementwise>() && op->getNumRegions() == 0);
}

class Unmerger {
public:
  explicit Unmerger(func::FuncOp function) : function(function) {}

  void run() {
    for (auto [index, argument] : llvm::enumerate(function.getArguments()))
      markInput(argument, names::argKind(function, index) == names::kind::kInput);
    for (Operation &op : llvm::make_early_inc_range(function.getBody().front().without_terminator())) {
      auto rules = dyn_cast<ShardingRuleOpInterface>(op);
      if (!rules || !llvm::all_of(op.getOperandTypes(), llvm::IsaPred<RankedTensorType>) ||
          !llvm::all_of(op.getResultTypes(), llvm::IsaPred<RankedTensorType>))
        continue;
      if (auto reshape = dyn_cast<ReshapeOp>(op))
        visitReshape(reshape);
      else
        visit(rules);
    }
    // What was moved left its old place without readers, and so did merges that nobody needed.
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(function.getBody().front())))
      if (isOpTriviallyDead(&op))
        op.erase();
  }

private:
  void markInput(Value argument, bool isInput) {
    auto type = dyn_cast<RankedTensorType>(argument.getType());
    if (!isInput || !type)
      return;
    int64_t count = isa<FloatType>(type.getElementType()) ? std::max<int64_t>(type.getRank() - 1, 0) : type.getRank();
    tokens[argument] = llvm::SmallBitVector(type.getRank());
    tokens[argument].set(0, count);
  }
  bool isToken(Value value, int64_t dim) const {
    auto it = tokens.find(value);
    return it != tokens.end() && it->second.test(dim);
  }

  /// Factors that a dimension of tokens of some operand has.
  llvm::SmallBitVector tokenFactors(Operation *op, const ShardingRule &rule) const {
    llvm::SmallBitVector factors(rule.factors.size());
    for (auto [operand, dims] : llvm::zip_equal(op->getOperands(), rule.operands))
      for (auto [dim, list] : llvm::enumerate(dims))
        if (isToken(operand, dim))
          for (int64_t factor : list)
            factors.set(factor);
    return factors;
  }

  /// A result's dimension is of tokens when a factor of it is.
  void markResults(Operation *op, const ShardingRule &rule) {
    llvm::SmallBitVector factors = tokenFactors(op, rule);
    if (factors.none())
      return;
    for (auto [result, dims] : llvm::zip_equal(op->getResults(), rule.results)) {
      llvm::SmallBitVector marks(dims.size());
      for (auto [dim, list] : llvm::enumerate(dims))
        if (llvm::any_of(list, [&](int64_t factor) { return factors.test(factor); }))
          marks.set(dim);
      tokens[result] = marks;
    }
  }

  /// Reshapes, where that changes anything, and follows the tokens.
  Value emitReshape(OpBuilder &builder, Location loc, Value value, ArrayRef<int64_t> shape) {
    Value result = nd::reshape(builder, loc, value, shape);
    if (result != value)
      if (auto reshape = result.getDefiningOp<ReshapeOp>())
        markResults(reshape, reshape.getShardingRule());
    return result;
  }

  void visitReshape(ReshapeOp reshape);
  bool splitIndices(ReshapeOp reshape);
  void visit(ShardingRuleOpInterface op);
  SmallVector<Sizes> fit(Operation *op, const ShardingRule &rule, MutableArrayRef<Merge> operands);
  /// The operand with its dimensions in parts.
  Value emitExpanded(OpBuilder &builder, Value operand, const Expansion &expansion);

  func::FuncOp function;
  llvm::DenseMap<Value, Merge> merges;
  llvm::DenseMap<Value, llvm::SmallBitVector> tokens;
};

/// Rows that are taken in one order and then split (positions that an exporter computed): the indices are split
/// instead.
bool Unmerger::splitIndices(ReshapeOp reshape) {
  auto take = reshape.getInput().getDefiningOp<TakeOp>();
  if (!take || !take->hasOneUse())
    return false;
  ArrayRef<int64_t> row = tensorTypeOf(take.getTable()).getShape().drop_front(), shape = reshape.getType().getShape();
  if (shape.size() < row.size() || shape.take_back(row.size()) != row)
    return false;
  OpBuilder builder(reshape);
  Operation *moved = take->clone();
  moved->setOperand(1, emitReshape(builder, take.getLoc(), take.getIndices(), shape.drop_back(row.size())));
  moved->getResult(0).setType(reshape.getType());
  builder.insert(moved);
  markResults(moved, cast<ShardingRuleOpInterface>(moved).getShardingRule());
  reshape.getResult().replaceAllUsesWith(moved->getResult(0));
  return true;
}

/// Becomes one reshape of what the operand merges, without merging tokens, and a merge of tokens behind it.
void Unmerger::visitReshape(ReshapeOp reshape) {
  if (splitIndices(reshape))
    return;
  OpBuilder builder(reshape);
  Value source = reshape.getInput();
  if (auto it = merges.find(source); it != merges.end())
    source = it->second.source;
  auto whole = ReshapeOp::create(builder, reshape.getLoc(), reshape.getType(), source);
  ShardingRule rule = whole.getShardingRule();
  llvm::SmallBitVector factors = tokenFactors(whole, rule);

  Merge merge;
  for (auto [dim, list] : llvm::enumerate(rule.results.front())) {
    bool isMerged = list.size() > 1 && llvm::any_of(list, [&](int64_t factor) { return factors.test(factor); });
    isMerged &= llvm::all_of(list, [&](int64_t f) { return rule.factors[f].kind == FactorKind::PassThrough; });
    Sizes &parts = merge.parts.emplace_back();
    if (isMerged)
      parts = llvm::map_to_vector<2>(list, [&](int64_t factor) { return rule.factors[factor].size; });
    else
      parts.push_back(reshape.getType().getDimSize(dim));
  }
  whole.erase();
  Expansion expansion{merge.parts};
  merge.source = emitReshape(builder, reshape.getLoc(), source, expansion.shape());
  Value result = emitReshape(builder, reshape.getLoc(), merge.source, reshape.getType().getShape());
  reshape.getResult().replaceAllUsesWith(result);
  if (!expansion.isTrivial())
    merges.try_emplace(result, std::move(merge));
}

Value Unmerger::emitExpanded(OpBuilder &builder, Value operand, const Expansion &expansion) {
  if (expansion.isTrivial())
    return operand;
  SmallVector<int64_t> shape = expansion.shape();
  if (auto it = merges.find(operand); it != merges.end())
    return emitReshape(builder, operand.getLoc(), it->second.source, shape);
  DenseElementsAttr elements;
  if (matchPattern(operand, m_Constant(&elements)))
    return arith::ConstantOp::create(builder, operand.getLoc(), elements.reshape(elements.getType().clone(shape)));
  if (auto broadcast = operand.getDefiningOp<BroadcastOp>()) {
    Expansion input;
    for (int64_t dim : broadcast.getDims())
      input.parts.push_back(expansion.parts[dim]);
    Value expanded = emitExpanded(builder, broadcast.getInput(), input);
    return broadcastTo(builder, broadcast.getLoc(), expanded, shape, expansion.expand(broadcast.getDims()));
  }
  return emitReshape(builder, operand.getLoc(), operand, shape);
}

/// Merges again what the operation cannot have in parts, operand by operand, until the rest fits. Returns the parts of
/// each factor.
SmallVector<Sizes> Unmerger::fit(Operation *op, const ShardingRule &rule, MutableArrayRef<Merge> operands) {
  while (true) {
    SmallVector<Sizes> parts(rule.factors.size());
    bool changed = false;
    auto whole = [&](unsigned operand, int64_t dim) {
      operands[operand].parts[dim] = {tensorTypeOf(op->getOperand(operand)).getDimSize(dim)};
      changed = true;
    };
    for (auto [index, merge] : llvm::enumerate(operands))
      for (auto [dim, found] : llvm::enumerate(merge.parts)) {
        const ShardingRule::DimFactors &list = rule.operands[index][dim];
        if (found.size() == 1)
          continue;
        if (list.size() != 1 || rule.factors[list.front()].kind == FactorKind::NeedReplication ||
            (!parts[list.front()].empty() && parts[list.front()] != found))
          whole(index, dim);
        else
          parts[list.front()] = found;
      }
    // A dimension that is summed over is split only where all have it in parts: a weight keeps its shape.
    for (auto [index, dims] : llvm::enumerate(rule.operands))
      for (auto [dim, list] : llvm::enumerate(dims))
        for (int64_t factor : list)
          if (rule.factors[factor].kind == FactorKind::Reduction && !parts[factor].empty() &&
              operands[index].parts[dim] != parts[factor])
            for (auto [other, otherDims] : llvm::enumerate(rule.operands))
              for (auto [otherDim, otherList] : llvm::enumerate(otherDims))
                if (llvm::is_contained(otherList, factor) && operands[other].parts[otherDim].size() > 1)
                  whole(other, otherDim);
    if (!changed)
      return parts;
  }
}

void Unmerger::visit(ShardingRuleOpInterface op) {
  ShardingRule rule = op.getShardingRule();
  // Indices number the rows of a table, which may be shards but stay one dimension.
  if (isa<TakeOp>(op))
    for (int64_t factor : rule.operands[0][0])
      rule.factors[factor].kind = FactorKind::NeedReplication;
  SmallVector<Merge> merged;
  for (Value operand : op->getOperands()) {
    auto it = merges.find(operand);
    if (it != merges.end())
      merged.push_back(it->second);
    else
      merged.push_back(
          {operand, llvm::map_to_vector(tensorTypeOf(operand).getShape(), [](int64_t size) { return Sizes{size}; })});
  }
  SmallVector<Sizes> parts = fit(op, rule, merged);
  if (!canRenumber(op) || llvm::all_of(parts, [](const Sizes &list) { return list.empty(); }))
    return markResults(op, rule);

  auto expansionOf = [&](Value value, const ShardingRule::TensorFactors &dims) {
    Expansion expansion;
    for (auto [list, size] : llvm::zip_equal(dims, tensorTypeOf(value).getShape()))
      expansion.parts.push_back(list.size() == 1 && parts[list.front()].size() > 1 ? parts[list.front()] : Sizes{size});
    return expansion;
  };
  SmallVector<Expansion> operands, results;
  for (auto [operand, dims] : llvm::zip_equal(op->getOperands(), rule.operands))
    operands.push_back(expansionOf(operand, dims));
  for (auto [result, dims] : llvm::zip_equal(op->getResults(), rule.results))
    results.push_back(expansionOf(result, dims));
  // Its operand and indices have equal ranks, whatever their dimensions share.
  if (isa<TakeAlongOp>(op) && operands[0].shape().size() != operands[1].shape().size())
    return markResults(op, rule);

  OpBuilder builder(op);
  Operation *moved = op->clone();
  for (auto [index, operand] : llvm::enumerate(op->getOperands()))
    moved->setOperand(index, emitExpanded(builder, operand, operands[index]));
  for (auto [index, result] : llvm::enumerate(op->getResults()))
    moved->getResult(index).setType(withShape(tensorTypeOf(result), results[index].shape()));
  renumber(moved, operands, results.front());
  builder.insert(moved);
  markResults(moved, cast<ShardingRuleOpInterface>(moved).getShardingRule());
  for (auto [result, newResult, expansion] : llvm::zip_equal(op->getResults(), moved->getResults(), results)) {
    Value merged = emitReshape(builder, op->getLoc(), newResult, tensorTypeOf(result).getShape());
    if (!expansion.isTrivial())
      merges.try_emplace(merged, Merge{newResult, expansion.parts});
    result.replaceAllUsesWith(merged);
  }
}

struct UnmergeDimensions : nd::impl::UnmergeDimensionsBase<UnmergeDimensions> {
  void runOnOperation() override {
    if (!getOperation().isExternal())
      Unmerger(getOperation()).run();
  }
};

} // namespace
