//===- StatePlan.cpp - The state of every value of a program --------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "StatePlan.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "nd/Dialect/ND/IR/Names.h"

using namespace mlir;
using namespace nd;

namespace {

RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

int64_t elementsOf(ValueRange values) {
  int64_t elements = 0;
  for (Value value : values)
    elements += typeOf(value).getNumElements();
  return elements;
}

/// Whether carrying these partial operands on means to reduce more elements in the end than reducing them here.
bool growsWhenCarriedOn(Operation *op, ArrayRef<unsigned> partial) {
  int64_t reducedHere = 0;
  for (unsigned index : partial) {
    Value operand = op->getOperand(index);
    llvm::SmallPtrSet<Operation *, 4> users(operand.user_begin(), operand.user_end());
    int64_t carriedOn = 0;
    for (Operation *user : users)
      carriedOn += elementsOf(user->getResults());
    if (users.size() > 1 && carriedOn > elementsOf(operand))
      return true;
    reducedHere += elementsOf(operand);
  }
  return elementsOf(op->getResults()) > reducedHere;
}

} // namespace

bool nd::hasScaleFactor(Operation *product, unsigned tensor) {
  if (!isa<arith::MulFOp>(product))
    return false;
  Value other = product->getOperand(1 - tensor);
  if (typeOf(other).getRank() == 0)
    return true;
  if (auto broadcast = other.getDefiningOp<BroadcastOp>())
    return broadcast.getInput().getType().getRank() == 0;
  DenseElementsAttr elements;
  return matchPattern(other, m_Constant(&elements)) && elements.isSplat();
}

Value nd::buildScaleFactor(OpBuilder &builder, Operation *product, unsigned tensor) {
  if (!hasScaleFactor(product, tensor))
    return {};
  Value other = product->getOperand(1 - tensor);
  if (typeOf(other).getRank() == 0)
    return other;
  if (auto broadcast = other.getDefiningOp<BroadcastOp>())
    return broadcast.getInput();
  DenseElementsAttr elements;
  matchPattern(other, m_Constant(&elements));
  auto type = RankedTensorType::get({}, elements.getElementType());
  return arith::ConstantOp::create(builder, product->getLoc(),
                                   DenseElementsAttr::get(type, elements.getSplatValue<Attribute>()));
}

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
  for (Operation &op : program.getBody().without_terminator()) {
    FailureOr<ShardingRule> rule = getShardingRule(&op);
    if (failed(rule))
      return failure();
    auto shardings = op.getAttrOfType<ArrayAttr>(names::kShardings);
    if (!shardings || shardings.size() != op.getNumResults())
      return op.emitError() << "'" << op.getName()
                            << "' has no nd.shardings for its results; run nd-propagate-sharding first, and "
                            << "nothing between that and this pass";
    for (auto [result, attr] : llvm::zip_equal(op.getResults(), shardings)) {
      auto sharding = dyn_cast<ShardingAttr>(attr);
      if (!sharding)
        return op.emitError() << "expected a #nd.sharding in nd.shardings but found " << attr;
      FailureOr<TensorSharding> plain = mesh.fromAttr(sharding, typeOf(result).getShape(), describe(result),
                                                      [&, &op = op] { return op.emitError(); });
      if (failed(plain))
        return failure();
      decided[result] = *plain;
    }
    steps.push_back({&op, std::move(*rule), {}, std::nullopt});
  }
  return success();
}

void StatePlan::visit(Step &step) {
  Operation *op = step.op;
  SmallVector<TensorSharding> operands =
      llvm::map_to_vector(op->getOperands(), [&](Value v) { return getUsedState(v); });
  SmallVector<ShardedTensor> tensors;
  for (auto [value, sharding, factors] : llvm::zip_equal(op->getOperands(), operands, step.rule.operands))
    tensors.push_back({&factors, &sharding, typeOf(value).getNumElements()});
  for (auto [value, factors] : llvm::zip_equal(op->getResults(), step.rule.results))
    tensors.push_back({&factors, &decided.find(value)->second, typeOf(value).getNumElements()});
  FactorAxes axes = chooseFactorAxes(mesh.getSizes(), step.rule, tensors);

  SmallVector<unsigned> partial;
  SmallVector<const TensorSharding *> states;
  for (auto [index, sharding] : llvm::enumerate(operands)) {
    states.push_back(&sharding);
    if (!sharding.unreduced.empty())
      partial.push_back(index);
  }
  // A product by a number is linear, in the form of nd.scale.
  step.scaled.reset();
  ShardingRule scaleRule;
  if (partial.size() == 1 && hasScaleFactor(op, partial.front())) {
    step.scaled = partial.front();
    scaleRule = step.rule;
    scaleRule.linear = {{partial.front()}};
  }
  UnreducedTransfer transfer = transferUnreduced(step.scaled ? scaleRule : step.rule, axes, states);
  if (transfer.addendIsWhole) {
    // Nothing partial may come about here: what is summed over is gathered, and partial operands are reduced.
    for (auto [factor, factorAxes] : llvm::zip_equal(step.rule.factors, axes))
      if (factor.kind == FactorKind::Reduction)
        factorAxes.clear();
    transfer = {};
    transfer.mustReduce = partial;
  }
  for (unsigned index : transfer.mustReduce)
    reduce(op->getOperand(index));
  if (!partial.empty() && growsWhenCarriedOn(op, partial))
    for (unsigned index : partial)
      reduce(op->getOperand(index));

  step.operandDims.clear();
  for (const ShardingRule::TensorFactors &factors : step.rule.operands)
    step.operandDims.push_back(dimsFor(axes, factors));
  for (auto [index, value] : llvm::enumerate(op->getResults())) {
    TensorSharding state{dimsFor(axes, step.rule.results[index]), transfer.unreducedOf(index), transfer.kind};
    if (state.unreduced.empty())
      state.kind = ReductionKind::sum;
    // Only sums are carried on.
    if (!state.unreduced.empty() && state.kind != ReductionKind::sum)
      reduce(value);
    this->states[value] = std::move(state);
  }
}

void StatePlan::computeStates() {
  for (Step &step : steps)
    visit(step);
  for (Value value : program.getReturn()->getOperands())
    if (!getState(value).unreduced.empty())
      reduce(value);
}

LogicalResult StatePlan::run() {
  if (failed(readArguments()) || failed(readSteps()))
    return failure();
  do {
    changed = false;
    computeStates();
  } while (changed);
  return success();
}
