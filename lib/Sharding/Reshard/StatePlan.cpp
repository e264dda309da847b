//===- StatePlan.cpp - The state of every value of a program --------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Reshard/StatePlan.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "nd/Dialect/ND/IR/Copies.h"
#include "nd/Dialect/ND/IR/Names.h"

using namespace mlir;
using namespace nd;

namespace {

RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

} // namespace

LogicalResult StatePlan::readArguments() {
  func::FuncOp function = program.function;
  for (BlockArgument argument : program.getBody().getArguments()) {
    FailureOr<TensorSharding> sharding = mesh.fromArgument(function, argument);
    if (failed(sharding))
      return failure();
    states[argument] = *sharding;
  }
  return success();
}

LogicalResult StatePlan::readSteps() {
  steps.reserve(program.getBody().getOperations().size());
  llvm::DenseMap<Operation *, AxisList> summed;
  for (Operation &op : program.getBody().without_terminator()) {
    FailureOr<ShardingRule> rule = getShardingRule(&op);
    if (failed(rule))
      return failure();
    auto lists = op.getAttrOfType<ArrayAttr>(names::kFactorAxes);
    if (!lists || lists.size() != rule->factors.size())
      return op.emitError() << "'" << op.getName() << "' has no nd.factor_axes for the factors of its rule; run "
                            << "nd-propagate-sharding first, and nothing between that and this pass";
    FailureOr<FactorAxes> axes = mesh.readLists(lists, [&op] { return op.emitError(); });
    if (failed(axes))
      return failure();
    AxisList &sums = summed[&op];
    for (auto [factor, list] : llvm::zip_equal(rule->factors, *axes))
      if (factor.kind == FactorKind::Reduction)
        sums.append(list);
    if (!sums.empty())
      sumsOverShards.insert(&op);
    steps.push_back({&op, std::move(*rule), std::move(*axes), {}, std::nullopt, {}, std::nullopt});
  }
  termsOfSums = findTermsOfSums(program.getBody(), [&](Operation *op) { return summed.lookup(op); });
  return success();
}

/// With --zero=1 gradients are scattered once a step, else with every microbatch.
void StatePlan::findAccumulatedShards() {
  auto module = program.function->getParentOfType<ModuleOp>();
  if (names::moduleInt(module, names::kPlan, "zero") == 1)
    return;
  for (const Step &step : steps) {
    if (!isa<AdamWOp, SgdOp, SumCopiesOp>(step.op))
      continue;
    unsigned index = isa<SumCopiesOp>(step.op) ? 0 : 1;
    if (Value gradient = step.op->getOperand(index); gradient.getDefiningOp<AccumulateOp>())
      accumulatedShards[gradient] = dimsFor(step.axes, step.rule.operands[index]);
  }
}

/// A partial tensor, scattered to `dims` over axes that it is partial over; nothing where that is not what separates
/// the two.
static std::optional<TensorSharding> scattered(TensorSharding partial, ArrayRef<AxisList> dims) {
  bool scatters = false;
  for (auto [have, want] : llvm::zip_equal(partial.dims, dims)) {
    if (have.size() > want.size() || !std::equal(have.begin(), have.end(), want.begin()))
      return std::nullopt;
    for (unsigned axis : llvm::drop_begin(want, have.size())) {
      auto *it = llvm::find(partial.unreduced, axis);
      if (it == partial.unreduced.end())
        return std::nullopt;
      partial.unreduced.erase(it);
      scatters = true;
    }
  }
  partial.dims.assign(dims.begin(), dims.end());
  return scatters ? std::optional(partial) : std::nullopt;
}

TensorSharding StatePlan::getVisibleState(Value value) const {
  TensorSharding state = getState(value);
  if (auto it = reducedAxes.find(value); it != reducedAxes.end())
    llvm::erase_if(state.unreduced, [&](unsigned axis) { return llvm::is_contained(it->second, axis); });
  return state.unreduced.empty() ? state.reduced() : state;
}

void StatePlan::reduce(Value value, ArrayRef<unsigned> axes) {
  if (axes.empty())
    return;
  AxisList &reduced = reducedAxes[value];
  for (unsigned axis : axes)
    if (!llvm::is_contained(reduced, axis)) {
      reduced.push_back(axis);
      changed = true;
    }
}

/// The products of attention's gradient are rounded before they are reduced, as those of any other product are. Over
/// the axes of the sequence its keys and values are sums of f32.
bool StatePlan::roundsPartialSum(Operation *op, unsigned axis) const {
  return isa<arith::TruncFOp>(op) && (mesh.getRole(axis) != AxisRole::tensor || !comesFromAttentionGradient(op));
}

SmallVector<unsigned, 2> StatePlan::partialOperandsOf(Operation *op) const {
  SmallVector<unsigned, 2> partial;
  for (auto [index, operand] : llvm::enumerate(op->getOperands()))
    if (!getState(operand).unreduced.empty() && !getVisibleState(operand).unreduced.empty())
      partial.push_back(index);
  return partial;
}

void StatePlan::reduceWhatIsNotCarried(const Step &step, const ShardingRule &rule) {
  SmallVector<unsigned, 2> partial = partialOperandsOf(step.op);
  if (!llvm::is_contained(rule.linear, partial))
    return;
  auto isCarried = [&](unsigned axis) {
    return llvm::none_of(step.axes, [&](const AxisList &axes) { return llvm::is_contained(axes, axis); }) &&
           !roundsPartialSum(step.op, axis) && llvm::all_of(partial, [&](unsigned index) {
             TensorSharding state = getVisibleState(step.op->getOperand(index));
             return llvm::is_contained(state.unreduced, axis) && state.kind == ReductionKind::sum;
           });
  };
  // By the states of all of them, before any of these changes.
  SmallVector<std::pair<Value, AxisList>, 2> reduced;
  for (unsigned index : partial) {
    Value operand = step.op->getOperand(index);
    AxisList axes = getVisibleState(operand).unreduced;
    llvm::erase_if(axes, isCarried);
    reduced.push_back({operand, axes});
  }
  for (const auto &[operand, axes] : reduced)
    reduce(operand, axes);
}

bool StatePlan::visitSumOfNumbers(Step &step) {
  Operation *op = step.op;
  if (!isa<arith::AddFOp>(op) || typeOf(op->getResult(0)).getRank() != 0)
    return false;
  AxisList all;
  for (Value operand : op->getOperands()) {
    const TensorSharding state = getVisibleState(operand);
    if (!state.unreduced.empty() && state.kind != ReductionKind::sum)
      return false;
    for (unsigned axis : state.unreduced)
      if (!llvm::is_contained(all, axis))
        all.push_back(axis);
  }
  if (all.empty())
    return false;
  llvm::sort(all);
  step.partialOver.clear();
  for (Value operand : op->getOperands()) {
    AxisList &missing = step.partialOver.emplace_back();
    for (unsigned axis : all)
      if (!llvm::is_contained(getVisibleState(operand).unreduced, axis))
        missing.push_back(axis);
  }
  step.operandDims.assign(op->getNumOperands(), {});
  states[op->getResult(0)] = {{}, all, ReductionKind::sum};
  return true;
}

bool StatePlan::visitSumOverMoreAxes(Step &step) {
  if (!isa<arith::AddFOp>(step.op))
    return false;
  TensorSharding left = getVisibleState(step.op->getOperand(0)), right = getVisibleState(step.op->getOperand(1));
  bool leftIsMore = left.unreduced.size() > right.unreduced.size();
  const AxisList &more = leftIsMore ? left.unreduced : right.unreduced;
  const AxisList &fewer = leftIsMore ? right.unreduced : left.unreduced;
  auto isUsed = [&](unsigned axis) {
    return llvm::any_of(step.axes, [&](const AxisList &axes) { return llvm::is_contained(axes, axis); });
  };
  if (fewer.empty() || more.size() == fewer.size() || left.kind != ReductionKind::sum ||
      right.kind != ReductionKind::sum || llvm::any_of(more, isUsed) ||
      !llvm::all_of(fewer, [&](unsigned axis) { return llvm::is_contained(more, axis); }))
    return false;
  step.scaled.reset();
  step.added.reset();
  step.partialOver.resize(2);
  for (unsigned axis : more)
    if (!llvm::is_contained(fewer, axis))
      step.partialOver[leftIsMore].push_back(axis);
  step.operandDims.clear();
  for (const ShardingRule::TensorFactors &factors : step.rule.operands)
    step.operandDims.push_back(dimsFor(step.axes, factors));
  states[step.op->getResult(0)] = {dimsFor(step.axes, step.rule.results[0]), more, ReductionKind::sum};
  return true;
}

void StatePlan::visit(Step &step) {
  Operation *op = step.op;
  step.partialOver.clear();
  if (visitSumOfNumbers(step) || visitSumOverMoreAxes(step))
    return;
  FactorAxes axes = step.axes;

  // A product by a number is linear, in the form of nd.scale.
  step.scaled.reset();
  ShardingRule scaleRule;
  if (SmallVector<unsigned, 2> partial = partialOperandsOf(op);
      partial.size() == 1 && hasScaleFactor(op, partial.front())) {
    step.scaled = partial.front();
    scaleRule = step.rule;
    scaleRule.linear = {{partial.front()}};
  }
  const ShardingRule &rule = step.scaled ? scaleRule : step.rule;
  reduceWhatIsNotCarried(step, rule);
  SmallVector<unsigned, 2> partial = partialOperandsOf(op);
  SmallVector<TensorSharding> operands =
      llvm::map_to_vector(op->getOperands(), [&](Value v) { return getVisibleState(v); });
  SmallVector<const TensorSharding *> states;
  for (const TensorSharding &sharding : operands)
    states.push_back(&sharding);
  UnreducedTransfer transfer = transferUnreduced(rule, axes, states);
  if (transfer.addendIsWhole) {
    // Nothing partial may come about here: what is summed over is gathered, and partial operands are reduced.
    for (auto [factor, factorAxes] : llvm::zip_equal(step.rule.factors, axes))
      if (factor.kind == FactorKind::Reduction)
        factorAxes.clear();
    transfer = {};
    transfer.mustReduce.assign(partial.begin(), partial.end());
  }
  for (unsigned index : transfer.mustReduce)
    reduce(op->getOperand(index), operands[index].unreduced);
  auto isReducedWithOthers = [&](Operation *user) {
    auto it = termsOfSums.find(user);
    return it != termsOfSums.end() && llvm::all_of(partial, [&](unsigned index) {
             return llvm::all_of(operands[index].unreduced,
                                 [&](unsigned axis) { return llvm::is_contained(it->second, axis); });
           });
  };
  if (!partial.empty() && growsWhenCarriedOn(op, partial, [&](Operation *user) {
        return sumsOverShards.contains(user) || isReducedWithOthers(user);
      }))
    for (unsigned index : partial)
      reduce(op->getOperand(index), operands[index].unreduced);

  step.added.reset();
  if (auto it = accumulatedShards.find(isa<AccumulateOp>(op) ? op->getResult(0) : Value());
      it != accumulatedShards.end() && !isReducedAtDefinition(op->getOperand(0)))
    step.added = scattered(operands[0], it->second);
  if (step.added) {
    step.operandDims = {step.added->dims};
    this->states[op->getResult(0)] = *step.added;
    return;
  }
  // Copies are summed up on the shards in which they are stored: fewer elements than all that are copied.
  if (isa<SumCopiesOp>(op) && partial.size() == 1 && transfer.mustReduce.empty() &&
      !isReducedAtDefinition(op->getOperand(0)))
    if ((step.added = scattered(operands[0], dimsFor(axes, step.rule.operands[0])))) {
      states = {&*step.added};
      transfer = transferUnreduced(step.rule, axes, states);
    }
  step.operandDims.clear();
  for (const ShardingRule::TensorFactors &factors : step.rule.operands)
    step.operandDims.push_back(dimsFor(axes, factors));
  for (auto [index, value] : llvm::enumerate(op->getResults())) {
    TensorSharding state{dimsFor(axes, step.rule.results[index]), transfer.unreducedOf(index), transfer.kind};
    if (state.unreduced.empty())
      state.kind = ReductionKind::sum;
    // Only sums are carried on.
    if (state.kind != ReductionKind::sum)
      reduce(value, state.unreduced);
    this->states[value] = std::move(state);
  }
}

void StatePlan::computeStates() {
  for (Step &step : steps)
    visit(step);
  for (Value value : program.getReturn()->getOperands())
    if (const TensorSharding state = getVisibleState(value); !state.unreduced.empty())
      reduce(value, state.unreduced);
}

void StatePlan::chooseReducedStates() {
  auto shards = [&](ArrayRef<AxisList> dims) {
    int64_t product = 1;
    for (const AxisList &axes : dims)
      product *= numShards(mesh.getSizes(), axes);
    return product;
  };
  auto consider = [&](Value value, ArrayRef<AxisList> dims) {
    if (!isReducedAtDefinition(value))
      return;
    auto [it, inserted] = reducedStates.try_emplace(value, getVisibleState(value));
    if (inserted || shards(dims) > shards(it->second.dims))
      it->second.dims.assign(dims.begin(), dims.end());
  };
  for (const Step &step : steps)
    for (auto [operand, dims] : llvm::zip_equal(step.op->getOperands(), step.operandDims))
      consider(operand, dims);
  func::FuncOp function = program.function;
  for (const Step &step : steps)
    if (isa<AdamWOp, SgdOp>(step.op))
      if (Value gradient = step.op->getOperand(1); isReducedAtDefinition(gradient))
        reducedStates[gradient].dims = step.operandDims[1];
  for (auto [index, value] : llvm::enumerate(program.getReturn()->getOperands()))
    if (auto attr = function.getResultAttrOfType<ShardingAttr>(index, names::kSharding);
        attr && isReducedAtDefinition(value) && !reducedStates.contains(value))
      if (auto sharding = mesh.fromAttr(attr, typeOf(value).getShape(), describeResult(function, index),
                                        [&] { return function.emitError(); });
          succeeded(sharding))
        reducedStates[value] = *sharding;
}

TensorSharding StatePlan::getUsedState(Value value) const {
  if (!isReducedAtDefinition(value))
    return getState(value);
  auto it = reducedStates.find(value);
  return it == reducedStates.end() ? getVisibleState(value) : it->second;
}

LogicalResult StatePlan::run() {
  if (failed(readArguments()) || failed(readSteps()))
    return failure();
  findAccumulatedShards();
  do {
    changed = false;
    computeStates();
  } while (changed);
  // What was partial only until something in front of it was reduced.
  SmallVector<Value> whole;
  for (const auto &[value, axes] : reducedAxes)
    if (getState(value).unreduced == getVisibleState(value).unreduced)
      whole.push_back(value);
  for (Value value : whole)
    reducedAxes.erase(value);
  chooseReducedStates();
  return success();
}
