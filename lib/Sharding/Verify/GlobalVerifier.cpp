//===- GlobalVerifier.cpp - States of the global view, recomputed ---------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Verify/GlobalVerifier.h"
#include "nd/Dialect/ND/IR/Names.h"

using namespace mlir;
using namespace nd;

namespace {

std::string dimensionOf(Value value, int64_t dim) {
  return "dimension " + std::to_string(dim) + " of " + describe(value);
}

} // namespace

LogicalResult GlobalVerifier::verifyBoundary() {
  func::FuncOp function = program.function;
  auto compare = [&](Type type, Attribute annotated, const std::string &tensor) -> LogicalResult {
    Attribute found = cast<RankedTensorType>(type).getEncoding();
    if (annotated && annotated != found)
      return function.emitError() << tensor << " is annotated " << annotated << " but has sharding " << found;
    return success();
  };
  for (auto [index, type] : llvm::enumerate(function.getArgumentTypes()))
    if (failed(compare(type, function.getArgAttr(index, names::kSharding), describeArgument(function, index))))
      return failure();
  for (auto [index, value] : llvm::enumerate(program.getReturn()->getOperands())) {
    FailureOr<TensorSharding> sharding = mesh.fromType(value, program.getReturn());
    if (failed(sharding) || failed(compare(value.getType(), function.getResultAttr(index, names::kSharding),
                                           describeResult(function, index))))
      return failure();
    if (!sharding->unreduced.empty())
      return program.getReturn()->emitError()
             << describeResult(function, index) << " is unreduced over " << mesh.str(sharding->unreduced)
             << ": every rank would return a partial value";
  }
  return success();
}

LogicalResult GlobalVerifier::readFactors(Operation *op, const ShardingRule &rule, Value value,
                                          const TensorSharding &sharding, const ShardingRule::TensorFactors &factors,
                                          SmallVectorImpl<std::optional<Witness>> &witnesses) {
  for (auto [dim, dimFactors] : llvm::enumerate(factors)) {
    const AxisList &axes = sharding.dims[dim];
    SmallVector<AxisList> dealt;
    if (dealAxes(mesh.getSizes(), rule, dimFactors, axes, dealt) != axes.size())
      return op->emitError() << dimensionOf(value, dim) << " is sharded over " << mesh.str(axes) << ", which '"
                             << op->getName() << "' cannot follow: " << rule.str();
    for (auto [factor, found] : llvm::zip_equal(dimFactors, dealt)) {
      if (rule.factors[factor].kind == FactorKind::NeedReplication && !found.empty())
        return op->emitError() << "'" << op->getName() << "' needs the whole of " << dimensionOf(value, dim)
                               << ", but it is sharded over " << mesh.str(found);
      std::optional<Witness> &witness = witnesses[factor];
      if (witness && witness->axes != found)
        return op->emitError() << "'" << op->getName() << "' runs on one sharding, but " << witness->dim
                               << " is sharded over [" << mesh.str(witness->axes) << "] and " << dimensionOf(value, dim)
                               << " over [" << mesh.str(found) << "]";
      if (!witness)
        witness = Witness{found, dimensionOf(value, dim)};
    }
  }
  return success();
}

LogicalResult GlobalVerifier::verifyAsPartial(AsPartialOp op, const TensorSharding &from, const TensorSharding &to) {
  AxisList expected = from.unreduced;
  FailureOr<FactorAxes> axes =
      mesh.readLists(ArrayAttr::get(op.getContext(), {op.getAxes()}), [&] { return op.emitError(); });
  if (failed(axes))
    return failure();
  expected.append(axes->front());
  llvm::sort(expected);
  if (from.dims != to.dims || to.unreduced != expected || to.kind != ReductionKind::sum)
    return op.emitError() << "makes a sum over " << mesh.str(axes->front()) << " of a tensor that is unreduced over ["
                          << mesh.str(from.unreduced) << "], but its result is unreduced over ["
                          << mesh.str(to.unreduced) << "]";
  if (static_cast<int64_t>(op.getParts()) != numShards(mesh.getSizes(), axes->front()))
    return op.emitError() << "makes " << op.getParts() << " parts, but there are "
                          << numShards(mesh.getSizes(), axes->front()) << " ranks along " << mesh.str(axes->front());
  return success();
}

LogicalResult GlobalVerifier::verifyOperation(Operation *op) {
  const ShardingRule *rule = rules.get(op);
  if (!rule)
    return failure();
  SmallVector<TensorSharding> operands, results;
  for (Value operand : op->getOperands()) {
    FailureOr<TensorSharding> sharding = mesh.fromType(operand, op);
    if (failed(sharding))
      return failure();
    operands.push_back(*sharding);
  }
  for (Value result : op->getResults()) {
    FailureOr<TensorSharding> sharding = mesh.fromType(result, op);
    if (failed(sharding))
      return failure();
    results.push_back(*sharding);
  }
  if (isa<ReshardOp>(op)) // changes the state on purpose; its own verifier knows the limits
    return success();

  if (auto part = dyn_cast<AsPartialOp>(op))
    return verifyAsPartial(part, operands.front(), results.front());

  SmallVector<std::optional<Witness>> witnesses(rule->factors.size());
  for (auto [value, sharding, factors] : llvm::zip_equal(op->getOperands(), operands, rule->operands))
    if (failed(readFactors(op, *rule, value, sharding, factors, witnesses)))
      return failure();
  for (auto [value, sharding, factors] : llvm::zip_equal(op->getResults(), results, rule->results))
    if (failed(readFactors(op, *rule, value, sharding, factors, witnesses)))
      return failure();

  FactorAxes axes;
  for (const std::optional<Witness> &witness : witnesses)
    axes.push_back(witness ? witness->axes : AxisList());
  SmallVector<const TensorSharding *> states =
      llvm::map_to_vector(operands, [](const TensorSharding &s) { return &s; });
  UnreducedTransfer transfer = transferUnreduced(*rule, axes, states);
  if (!transfer.mustReduce.empty()) {
    unsigned index = transfer.mustReduce.front();
    return op->emitError() << "operand " << index << " of '" << op->getName() << "' ("
                           << describe(op->getOperand(index)) << ") is unreduced over "
                           << mesh.str(operands[index].unreduced) << ", but the operation needs its reduced value";
  }
  if (transfer.addendIsWhole)
    return op->emitError() << "'" << op->getName() << "' adds operand " << rule->addends.front()
                           << ", which is reduced, to sums that are "
                           << "unreduced over " << mesh.str(transfer.unreduced) << ": every rank would add it";
  for (auto [index, sharding] : llvm::enumerate(results)) {
    AxisList unreduced = transfer.unreducedOf(index);
    if (sharding.unreduced != unreduced || (!unreduced.empty() && sharding.kind != transfer.kind))
      return op->emitError() << describe(op->getResult(index)) << " is unreduced over [" << mesh.str(sharding.unreduced)
                             << "] by its type, but over [" << mesh.str(unreduced) << "] by the operation's rule";
  }
  return success();
}

LogicalResult GlobalVerifier::run() {
  for (BlockArgument argument : program.getBody().getArguments())
    if (failed(mesh.fromType(argument, program.function)))
      return failure();
  for (Operation &op : program.getBody().without_terminator())
    if (failed(verifyOperation(&op)))
      return failure();
  return verifyBoundary();
}
