//===- Uniform.cpp - Values that are equal along a dimension --------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Verify/Uniform.h"
#include "Program.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace nd;

static bool isConstantAlong(ElementsAttr attr, int64_t dim, int64_t count) {
  auto elements = dyn_cast<DenseElementsAttr>(attr);
  if (!elements)
    return false;
  if (elements.isSplat())
    return true;
  ArrayRef<int64_t> shape = elements.getType().getShape();
  int64_t inner = llvm::product_of(shape.drop_front(dim + 1)), size = shape[dim], minor = size / count;
  auto values = elements.getValues<Attribute>();
  for (int64_t index : llvm::seq<int64_t>(elements.getNumElements()))
    if (int64_t place = index / inner % size; values[index] != values[index - (place - place % minor) * inner])
      return false;
  return true;
}

bool Uniform::isAlong(Value value, int64_t dim) {
  return isAlong(value, dim, cast<RankedTensorType>(value.getType()).getDimSize(dim));
}

bool Uniform::isAlong(Value value, int64_t dim, int64_t count) {
  auto [it, isNew] = known.try_emplace({value, dim, count}, false);
  if (!isNew)
    return it->second;
  return known[{value, dim, count}] = compute(value, dim, count);
}

/// The factors of a dimension that make up its major part of that size; nothing where a factor is cut. The last may
/// have more elements, of which `count` come to `last`.
static std::optional<SmallVector<int64_t>> majorFactors(const ShardingRule &rule, ArrayRef<int64_t> dim, int64_t count,
                                                        int64_t &last) {
  SmallVector<int64_t> factors;
  for (int64_t factor : dim) {
    int64_t size = rule.factors[factor].size;
    if (count == 1)
      break;
    factors.push_back(factor);
    last = std::min(size, count);
    if (std::max(size, count) % last != 0)
      return std::nullopt;
    count /= last;
  }
  return factors;
}

bool Uniform::compute(Value value, int64_t dim, int64_t count) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return false;
  if (auto constant = dyn_cast<arith::ConstantOp>(op))
    return isConstantAlong(cast<ElementsAttr>(constant.getValue()), dim, count);
  unsigned index = cast<OpResult>(value).getResultNumber();
  // All ranks run this program: what is equal along a dimension here is so in the parts of the others.
  if (isa<AllReduceOp, PermuteOp>(op))
    return isAlong(op->getOperand(index), dim, count);
  if (auto gather = dyn_cast<AllGatherOp>(op))
    return gather.getDims()[index] != dim && isAlong(op->getOperand(index), dim, count);
  if (auto scatter = dyn_cast<ReduceScatterOp>(op))
    return scatter.getDims()[index] != dim && isAlong(op->getOperand(index), dim, count);
  if (auto part = dyn_cast<AllSliceOp>(op))
    return static_cast<int64_t>(part.getDim()) != dim && isAlong(part.getInput(), dim, count);
  if (auto iota = dyn_cast<IotaOp>(op))
    return dim != static_cast<int64_t>(iota.getDim());
  int64_t size = cast<RankedTensorType>(value.getType()).getDimSize(dim);
  if (auto slice = dyn_cast<SliceOp>(op)) // equal slices stay so in any choice of them
    return slice.getInput().getType().getDimSize(dim) == size ? isAlong(slice.getInput(), dim, count)
                                                              : isAlong(slice.getInput(), dim);
  auto sharded = dyn_cast<ShardingRuleOpInterface>(op);
  // What attention computes depends on the places of its queries.
  if (!sharded || isa<AttentionOp, AttentionGradOp>(op))
    return false;
  FailureOr<ShardingRule> rule = sharded.getShardingRule();
  if (failed(rule))
    return false;
  // An operation treats slices along a factor that passes alike, so equal ones stay equal.
  int64_t last = 1;
  std::optional<SmallVector<int64_t>> factors = majorFactors(*rule, rule->results[index][dim], count, last);
  if (!factors)
    return false;
  for (int64_t factor : *factors)
    if (rule->factors[factor].kind != FactorKind::PassThrough)
      return false;
  for (auto [operand, tensor] : llvm::zip_equal(op->getOperands(), rule->operands))
    for (auto [operandDim, dimFactors] : llvm::enumerate(tensor)) {
      int64_t slices = 1;
      for (auto [place, factor] : llvm::enumerate(dimFactors)) {
        if (!llvm::is_contained(*factors, factor))
          continue;
        // They are the major part there, too.
        if (place > 0 && !llvm::is_contained(*factors, dimFactors[place - 1]))
          return false;
        slices *= factor == factors->back() ? last : rule->factors[factor].size;
      }
      if (slices > 1 && !isAlong(operand, operandDim, slices))
        return false;
    }
  return true;
}
