//===- Backward.cpp - Reverse-mode differentiation of a block -------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Backward.h"
#include "nd/Dialect/ND/IR/Builders.h"
#include "nd/Dialect/ND/IR/GradientType.h"
#include "nd/Dialect/ND/IR/ND.h"

using namespace mlir;
using namespace nd;

namespace {

bool isFloatTensor(Value value) {
  return isa<RankedTensorType>(value.getType()) && isa<FloatType>(getElementTypeOrSelf(value));
}

/// Operands, and values from outside that the operation's regions use.
template <typename Predicate> bool anyInput(Operation *op, Predicate predicate) {
  if (op->getNumRegions() == 0)
    return llvm::any_of(op->getOperands(), predicate);
  return op
      ->walk([&](Operation *nested) {
        return llvm::any_of(nested->getOperands(), predicate) ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

} // namespace

Backward::Backward(Block &block, ArrayRef<Value> parameters) : block(block), parameters(parameters) {
  active.insert(parameters.begin(), parameters.end());
  for (Operation &op : block.without_terminator())
    if (anyInput(&op, [&](Value input) { return isActive(input); }))
      for (Value result : op.getResults())
        if (isFloatTensor(result))
          active.insert(result);
}

LogicalResult Backward::checkRules(Value root) {
  DenseSet<Value> leadsToRoot = {root};
  Operation *first = nullptr;
  for (Operation &op : llvm::reverse(block)) {
    if (llvm::none_of(op.getResults(), [&](Value result) { return leadsToRoot.contains(result) && isActive(result); }))
      continue;
    leadsToRoot.insert(op.operand_begin(), op.operand_end());
    if (!isa<DifferentiableOpInterface>(op))
      first = &op;
  }
  if (!first)
    return success();
  return first->emitOpError() << "has no gradient rule, and lies between a trainable weight and the loss; freeze the "
                                 "weights that reach it, or give it one (DifferentiableOpInterface)";
}

void Backward::accumulate(OpBuilder &builder, Value value, Value gradient) {
  Value &sum = arrived[value];
  if (sum && sum.getType() != gradient.getType()) {
    Type wide = gradientElementType(value);
    sum = convertFloat(builder, value.getLoc(), sum, wide);
    gradient = convertFloat(builder, value.getLoc(), gradient, wide);
  }
  sum = sum ? Value(arith::AddFOp::create(builder, value.getLoc(), sum, gradient)) : gradient;
}

Value Backward::take(Value value) {
  auto entry = arrived.find(value);
  if (entry == arrived.end())
    return {};
  Value sum = entry->second;
  arrived.erase(entry);
  return sum;
}

LogicalResult Backward::visit(OpBuilder &builder, Operation *op) {
  bool any = false;
  SmallVector<Value> resultGradients;
  for (Value result : op->getResults()) {
    resultGradients.push_back(take(result));
    any |= static_cast<bool>(resultGradients.back());
  }
  if (!any)
    return success();
  SmallVector<bool> wanted = llvm::map_to_vector(op->getOperands(), [&](Value operand) { return isActive(operand); });
  FailureOr<SmallVector<Value>> operandGradients =
      cast<DifferentiableOpInterface>(op).buildGradient(builder, resultGradients, wanted);
  if (failed(operandGradients))
    return failure();
  for (auto [operand, gradient, isWanted] : llvm::zip_equal(op->getOperands(), *operandGradients, wanted)) {
    if (!gradient || !isWanted)
      continue;
    auto type = cast<RankedTensorType>(operand.getType());
    if (gradient.getType() != type && gradient.getType() != type.clone(gradientElementType(operand)))
      return op->emitOpError() << "has a gradient of type " << gradient.getType() << " for an operand of type "
                               << operand.getType();
    accumulate(builder, operand, gradient);
  }
  return success();
}

LogicalResult Backward::run(OpBuilder &builder, Value root, Value seed) {
  if (failed(checkRules(root)))
    return failure();
  SmallVector<Operation *> order = llvm::map_to_vector(block, [](Operation &op) { return &op; });
  if (isActive(root))
    accumulate(builder, root, seed);
  for (Operation *op : llvm::reverse(order))
    if (failed(visit(builder, op)))
      return failure();
  for (Value parameter : parameters)
    if (Value gradient = take(parameter))
      gradients[parameter] = gradient;
  return success();
}
