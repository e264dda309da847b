//===- FusedProduct.cpp - A product whose output is cut in parts ----------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "FusedProduct.h"

using namespace mlir;
using namespace nd;

using Dims = SmallVector<int64_t, 2>;

namespace {

/// The dimensions of a reshape's result that are exactly the factors of `dims`, major to minor; nothing when outputs
/// and other dimensions mix.
std::optional<Dims> outputsOfReshape(ReshapeOp reshape, ArrayRef<int64_t> dims) {
  ShardingRule rule = reshape.getShardingRule();
  SmallVector<int64_t> wanted;
  for (int64_t dim : dims)
    for (int64_t factor : rule.operands.front()[dim]) {
      if (rule.factors[factor].kind != FactorKind::PassThrough)
        return std::nullopt;
      wanted.push_back(factor);
    }
  Dims result;
  for (size_t at = 0; at < wanted.size();) {
    const auto *dim = llvm::find_if(rule.results.front(), [&](const ShardingRule::DimFactors &list) {
      return !list.empty() && list.front() == wanted[at];
    });
    if (dim == rule.results.front().end() || dim->size() > wanted.size() - at ||
        ArrayRef<int64_t>(*dim) != ArrayRef(wanted).slice(at, dim->size()))
      return std::nullopt;
    result.push_back(dim - rule.results.front().begin());
    at += dim->size();
  }
  return result;
}

/// The interval that a slice takes of the outputs; nothing when it cuts anything but the first of their dimensions.
std::optional<FusedProduct::Interval> intervalOf(SliceOp slice, ArrayRef<int64_t> outputs) {
  ArrayRef<int64_t> from = slice.getInput().getType().getShape(), to = slice.getType().getShape();
  for (auto [dim, size] : llvm::enumerate(from))
    if (static_cast<int64_t>(dim) != outputs.front() && to[dim] != size)
      return std::nullopt;
  int64_t major = outputs.front(), inner = 1;
  if (slice.getStrides()[major] != 1 && to[major] != 1)
    return std::nullopt;
  for (int64_t dim : outputs.drop_front())
    inner *= from[dim];
  int64_t start = slice.getStarts()[major];
  return FusedProduct::Interval{start * inner, (start + to[major]) * inner};
}

/// A number, or a repetition of something along all dimensions of outputs.
bool isUniformAlong(Value operand, ArrayRef<int64_t> outputs) {
  DenseElementsAttr elements;
  if (matchPattern(operand, m_Constant(&elements)))
    return elements.isSplat();
  auto broadcast = operand.getDefiningOp<BroadcastOp>();
  return broadcast && llvm::none_of(outputs, [&](int64_t dim) { return llvm::is_contained(broadcast.getDims(), dim); });
}

} // namespace

std::optional<FusedProduct> FusedProduct::match(Value weight, llvm::function_ref<bool(Value)> isWeight) {
  if (!weight.hasOneUse())
    return std::nullopt;
  FusedProduct fused;
  OpOperand &use = *weight.use_begin();
  fused.product = dyn_cast<DotGeneralOp>(use.getOwner());
  if (!fused.product)
    return std::nullopt;
  bool isLeft = use.getOperandNumber() == 0;
  SmallVector<int64_t> free = isLeft ? fused.product.getLhsFree() : fused.product.getRhsFree();
  if (free.size() != 1)
    return std::nullopt;
  int64_t batch = fused.product.getLhsBatch().size(), left = fused.product.getLhsFree().size();
  fused.size = tensorTypeOf(weight).getDimSize(free.front());
  fused.parameters.push_back({weight, free.front()});
  if (!fused.addToChain(fused.product, {isLeft ? batch : batch + left}) || !fused.follow(isWeight) ||
      !fused.orderIntervals())
    return std::nullopt;
  return fused;
}

bool FusedProduct::addToChain(Operation *op, Dims outputs) {
  auto [it, isNew] = chain.try_emplace(op->getResult(0), outputs);
  return isNew || it->second == outputs;
}

bool FusedProduct::follow(llvm::function_ref<bool(Value)> isWeight) {
  for (size_t at = 0; at < chain.size(); ++at) {
    Value value = (chain.begin() + at)->first;
    for (Operation *user : llvm::to_vector(value.getUsers()))
      if (!followUser(value, user, isWeight))
        return false;
  }
  return !cuts.empty();
}

bool FusedProduct::followUser(Value value, Operation *user, llvm::function_ref<bool(Value)> isWeight) {
  Dims outputs = chain.lookup(value);
  if (auto slice = dyn_cast<SliceOp>(user)) {
    std::optional<Interval> interval = intervalOf(slice, outputs);
    if (interval)
      cuts.emplace_back(slice, *interval);
    return interval.has_value();
  }
  if (auto reshape = dyn_cast<ReshapeOp>(user)) {
    std::optional<Dims> moved = outputsOfReshape(reshape, outputs);
    return moved && addToChain(reshape, *moved);
  }
  if (auto transpose = dyn_cast<TransposeOp>(user)) {
    for (int64_t &dim : outputs)
      dim = llvm::find(transpose.getPermutation(), dim) - transpose.getPermutation().begin();
    return addToChain(transpose, outputs);
  }
  if (user->getNumResults() == 1 && chain.count(user->getResult(0)))
    return chain.lookup(user->getResult(0)) == outputs;
  if (!user->hasTrait<OpTrait::Elementwise>() || user->getNumResults() != 1 || user->getNumRegions() != 0)
    return false;
  // Of operands that have outputs too all but biases must be known already: a value and a function of it, say.
  for (Value operand : user->getOperands())
    if (chain.count(operand) ? chain.lookup(operand) != outputs
                             : !isUniformAlong(operand, outputs) && !addBias(operand, outputs, isWeight))
      return false;
  return addToChain(user, outputs);
}

/// A bias that nothing else reads, repeated along all dimensions but the outputs.
bool FusedProduct::addBias(Value operand, const Dims &outputs, llvm::function_ref<bool(Value)> isWeight) {
  auto broadcast = operand.getDefiningOp<BroadcastOp>();
  if (!broadcast || !operand.hasOneUse() || outputs.size() != 1 || broadcast.getDims() != ArrayRef(outputs))
    return false;
  Value bias = broadcast.getInput();
  if (!isWeight(bias) || !bias.hasOneUse())
    return false;
  parameters.push_back({bias, 0});
  return true;
}

bool FusedProduct::orderIntervals() {
  for (auto &[slice, interval] : cuts)
    intervals.push_back(interval);
  llvm::sort(intervals);
  intervals.erase(llvm::unique(intervals), intervals.end());
  int64_t end = 0;
  for (const Interval &interval : intervals) {
    if (interval.begin != end)
      return false;
    end = interval.end;
  }
  if (end != size || intervals.size() < 2)
    return false;
  // Every value of the chain must have whole indices of its first dimension in each part.
  for (auto &[value, outputs] : chain) {
    int64_t inner = size / tensorTypeOf(value).getDimSize(outputs.front());
    if (llvm::any_of(intervals, [&](const Interval &interval) { return interval.begin % inner != 0; }))
      return false;
  }
  return true;
}

SmallVector<int64_t> FusedProduct::shapeOf(Value value, const Dims &outputs, Interval interval) const {
  SmallVector<int64_t> shape(tensorTypeOf(value).getShape());
  shape[outputs.front()] = interval.size() / (size / shape[outputs.front()]);
  return shape;
}

Value FusedProduct::rebuildOperand(OpBuilder &builder, Value operand, const Dims &outputs, Interval interval,
                                   llvm::DenseMap<Value, Value> &rebuilt) {
  if (Value known = rebuilt.lookup(operand))
    return known;
  if (tensorTypeOf(operand).getRank() == 0)
    return operand;
  SmallVector<int64_t> shape = shapeOf(operand, outputs, interval);
  DenseElementsAttr elements;
  if (matchPattern(operand, m_Constant(&elements)))
    return arith::ConstantOp::create(builder, operand.getLoc(), elements.resizeSplat(elements.getType().clone(shape)));
  auto broadcast = operand.getDefiningOp<BroadcastOp>();
  Value input = rebuilt.lookup(broadcast.getInput());
  return broadcastTo(builder, broadcast.getLoc(), input ? input : Value(broadcast.getInput()), shape,
                     broadcast.getDims());
}

void FusedProduct::rewrite(ArrayRef<SmallVector<Value>> parts) {
  for (auto [number, interval] : llvm::enumerate(intervals)) {
    llvm::DenseMap<Value, Value> rebuilt;
    for (auto [parameter, values] : llvm::zip_equal(parameters, parts))
      rebuilt[parameter.value] = values[number];
    for (auto &[value, outputs] : chain) {
      Operation *op = value.getDefiningOp();
      OpBuilder builder(op);
      Operation *part = op->clone();
      bool isElementwise = op->hasTrait<OpTrait::Elementwise>();
      for (OpOperand &operand : part->getOpOperands()) {
        if (isElementwise)
          operand.set(rebuildOperand(builder, operand.get(), outputs, interval, rebuilt));
        else if (Value known = rebuilt.lookup(operand.get()))
          operand.set(known);
      }
      part->getResult(0).setType(withShape(tensorTypeOf(value), shapeOf(value, outputs, interval)));
      builder.insert(part);
      rebuilt[value] = part->getResult(0);
    }
    for (auto &[slice, taken] : cuts)
      if (taken == interval)
        slice.getResult().replaceAllUsesWith(rebuilt.lookup(slice.getInput()));
  }
  for (auto &[slice, interval] : cuts)
    slice.erase();
  for (auto &[value, outputs] : llvm::reverse(chain)) {
    Operation *op = value.getDefiningOp();
    SmallVector<Value> operands(op->getOperands());
    op->erase();
    for (Value operand : operands)
      if (auto broadcast = operand.getDefiningOp<BroadcastOp>())
        if (isOpTriviallyDead(broadcast))
          broadcast.erase();
  }
}
