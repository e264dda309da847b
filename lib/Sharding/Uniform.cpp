//===- Uniform.cpp - Values that are equal along a dimension --------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Uniform.h"
#include "Program.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace nd;

static bool isConstantAlong(ElementsAttr attr, int64_t dim) {
  auto elements = dyn_cast<DenseElementsAttr>(attr);
  if (!elements)
    return false;
  if (elements.isSplat())
    return true;
  ArrayRef<int64_t> shape = elements.getType().getShape();
  int64_t inner = llvm::product_of(shape.drop_front(dim + 1)), size = shape[dim];
  auto values = elements.getValues<Attribute>();
  for (int64_t index : llvm::seq<int64_t>(elements.getNumElements()))
    if (int64_t place = index / inner % size; values[index] != values[index - place * inner])
      return false;
  return true;
}

bool Uniform::isAlong(Value value, int64_t dim) {
  auto [it, isNew] = known.try_emplace({value, dim}, false);
  if (!isNew)
    return it->second;
  return known[{value, dim}] = compute(value, dim);
}

bool Uniform::compute(Value value, int64_t dim) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return false;
  if (auto constant = dyn_cast<arith::ConstantOp>(op))
    return isConstantAlong(cast<ElementsAttr>(constant.getValue()), dim);
  unsigned index = cast<OpResult>(value).getResultNumber();
  if (isa<AllReduceOp>(op))
    return isAlong(op->getOperand(index), dim);
  if (auto iota = dyn_cast<IotaOp>(op))
    return dim != static_cast<int64_t>(iota.getDim());
  if (auto slice = dyn_cast<SliceOp>(op))
    return isAlong(slice.getInput(), dim);
  auto sharded = dyn_cast<ShardingRuleOpInterface>(op);
  // What attention computes depends on the places of its queries.
  if (!sharded || isa<AttentionOp, AttentionGradOp>(op))
    return false;
  FailureOr<ShardingRule> rule = sharded.getShardingRule();
  if (failed(rule))
    return false;
  // An operation treats slices along a factor that passes alike, so equal ones stay equal.
  const SmallVector<int64_t> factors(rule->results[index][dim].begin(), rule->results[index][dim].end());
  for (int64_t factor : factors)
    if (rule->factors[factor].kind != FactorKind::PassThrough)
      return false;
  for (auto [operand, tensor] : llvm::zip_equal(op->getOperands(), rule->operands))
    for (auto [operandDim, operandFactors] : llvm::enumerate(tensor))
      if (llvm::any_of(operandFactors, [&](int64_t factor) { return llvm::is_contained(factors, factor); }) &&
          !isAlong(operand, operandDim))
        return false;
  return true;
}
