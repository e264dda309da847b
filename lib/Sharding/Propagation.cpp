//===- Propagation.cpp - Shardings along the factors of a program ---------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Propagation.h"
#include "nd/Dialect/ND/IR/Names.h"

using namespace mlir;
using namespace nd;

namespace {

RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

} // namespace

LogicalResult Propagation::seedArguments() {
  func::FuncOp function = program.function;
  for (BlockArgument argument : program.getBody().getArguments()) {
    FailureOr<TensorSharding> sharding = mesh.fromArgument(function, argument);
    if (failed(sharding))
      return failure();
    shardings[argument] = *sharding;
    fixed.insert(argument);
  }
  return success();
}

LogicalResult Propagation::collectSteps() {
  for (Operation &op : program.getBody().without_terminator()) {
    FailureOr<ShardingRule> rule = getShardingRule(&op);
    if (failed(rule))
      return failure();
    steps.push_back({&op, std::move(*rule)});
    for (Value result : op.getResults())
      shardings[result] = TensorSharding::replicated(typeOf(result).getRank());
  }
  return success();
}

LogicalResult Propagation::seedResults() {
  func::FuncOp function = program.function;
  for (auto [index, value] : llvm::enumerate(program.getReturn()->getOperands())) {
    auto attr = function.getResultAttrOfType<ShardingAttr>(index, names::kSharding);
    if (!attr)
      continue;
    FailureOr<TensorSharding> sharding = mesh.fromAttr(attr, typeOf(value).getShape(), describeResult(function, index),
                                                       [&] { return function.emitError(); });
    if (failed(sharding))
      return failure();
    grow(value, sharding->dims);
  }
  return success();
}

bool Propagation::grow(Value value, ArrayRef<AxisList> wanted) {
  return !fixed.contains(value) && growDims(shardings[value].dims, wanted);
}

bool Propagation::visit(const Step &step) {
  SmallVector<ShardedTensor> tensors;
  auto add = [&](ValueRange values, ArrayRef<ShardingRule::TensorFactors> factors) {
    for (auto [value, tensor] : llvm::zip_equal(values, factors))
      tensors.push_back({&tensor, &shardings.find(value)->second, typeOf(value).getNumElements()});
  };
  add(step.op->getOperands(), step.rule.operands);
  add(step.op->getResults(), step.rule.results);
  FactorAxes axes = chooseFactorAxes(mesh.getSizes(), step.rule, tensors);
  bool changed = false;
  for (auto [value, tensor] : llvm::zip_equal(step.op->getOperands(), step.rule.operands))
    changed |= grow(value, dimsFor(axes, tensor));
  for (auto [value, tensor] : llvm::zip_equal(step.op->getResults(), step.rule.results))
    changed |= grow(value, dimsFor(axes, tensor));
  return changed;
}

LogicalResult Propagation::run() {
  if (failed(seedArguments()) || failed(collectSteps()) || failed(seedResults()))
    return failure();
  bool changed = true;
  while (changed) {
    changed = false;
    for (const Step &step : steps)
      changed |= visit(step);
    for (const Step &step : llvm::reverse(steps))
      changed |= visit(step);
  }
  return success();
}
