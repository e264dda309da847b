//===- FactorSharding.cpp - Axes of tensors and axes of factors -----------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "nd/Sharding/FactorSharding.h"
#include "llvm/ADT/SmallBitVector.h"

using namespace nd;
using llvm::ArrayRef;
using llvm::SmallVector;

bool TensorSharding::shards(unsigned axis) const {
  return llvm::any_of(dims, [&](const AxisList &axes) { return llvm::is_contained(axes, axis); });
}

int64_t nd::numShards(MeshSizes mesh, ArrayRef<unsigned> axes) {
  int64_t shards = 1;
  for (unsigned axis : axes)
    shards *= mesh[axis];
  return shards;
}

unsigned nd::dealAxes(MeshSizes mesh, const ShardingRule &rule, ArrayRef<int64_t> dimFactors, ArrayRef<unsigned> axes,
                      llvm::SmallVectorImpl<AxisList> &result) {
  result.assign(dimFactors.size(), {});
  unsigned next = 0;
  for (auto [position, factor] : llvm::enumerate(dimFactors)) {
    int64_t rest = rule.factors[factor].size;
    for (; next < axes.size() && rest % mesh[axes[next]] == 0; ++next) {
      rest /= mesh[axes[next]];
      result[position].push_back(axes[next]);
    }
    if (rest != 1)
      break;
  }
  return next;
}

namespace {

struct Proposal {
  int64_t factor;
  AxisList axes;
  int64_t elements;
  size_t position; ///< among all proposals, which makes the order total
};

bool isPrefix(ArrayRef<unsigned> prefix, ArrayRef<unsigned> list) {
  return prefix.size() <= list.size() && list.take_front(prefix.size()) == prefix;
}

} // namespace

void nd::dropInexpressible(MeshSizes mesh, const ShardingRule &rule,
                           ArrayRef<const ShardingRule::TensorFactors *> tensors, FactorAxes &chosen) {
  bool changed = true;
  while (changed) {
    changed = false;
    for (const ShardingRule::TensorFactors *tensor : tensors)
      for (const ShardingRule::DimFactors &dim : *tensor) {
        bool full = true;
        for (int64_t factor : dim) {
          if (!full && !chosen[factor].empty()) {
            chosen[factor].clear();
            changed = true;
          }
          full &= numShards(mesh, chosen[factor]) == rule.factors[factor].size;
        }
      }
  }
}

FactorAxes nd::chooseFactorAxes(MeshSizes mesh, const ShardingRule &rule, ArrayRef<ShardedTensor> tensors) {
  SmallVector<Proposal> proposals;
  for (const ShardedTensor &tensor : tensors)
    for (auto [dim, factors] : llvm::enumerate(*tensor.factors)) {
      SmallVector<AxisList> dealt;
      dealAxes(mesh, rule, factors, tensor.sharding->dims[dim], dealt);
      for (auto [factor, axes] : llvm::zip_equal(factors, dealt))
        if (!axes.empty() && rule.factors[factor].kind != FactorKind::NeedReplication)
          proposals.push_back({factor, axes, tensor.elements, proposals.size()});
    }
  llvm::sort(proposals, [](const Proposal &a, const Proposal &b) {
    return a.elements != b.elements ? a.elements > b.elements : a.position < b.position;
  });

  FactorAxes chosen(rule.factors.size());
  llvm::SmallBitVector used(mesh.size());
  for (const Proposal &proposal : proposals) {
    AxisList &axes = chosen[proposal.factor];
    if (!isPrefix(axes, proposal.axes))
      continue;
    for (unsigned axis : ArrayRef<unsigned>(proposal.axes).drop_front(axes.size())) {
      if (used.test(axis))
        break;
      used.set(axis);
      axes.push_back(axis);
    }
  }
  dropInexpressible(mesh, rule, llvm::map_to_vector(tensors, [](const ShardedTensor &t) { return t.factors; }), chosen);
  return chosen;
}

SmallVector<AxisList> nd::dimsFor(ArrayRef<AxisList> factorAxes, const ShardingRule::TensorFactors &tensor) {
  SmallVector<AxisList> dims(tensor.size());
  for (auto [dim, factors] : llvm::enumerate(tensor))
    for (int64_t factor : factors)
      dims[dim].append(factorAxes[factor]);
  return dims;
}

AxisList UnreducedTransfer::unreducedOf(unsigned result) const {
  AxisList axes = unreduced;
  if (!summed.empty())
    axes.append(summed[result]);
  llvm::sort(axes);
  return axes;
}

UnreducedTransfer nd::transferUnreduced(const ShardingRule &rule, ArrayRef<AxisList> factorAxes,
                                        ArrayRef<const TensorSharding *> operands) {
  UnreducedTransfer transfer;
  transfer.kind = ReductionKind::sum;
  for (auto [factor, axes] : llvm::zip_equal(rule.factors, factorAxes))
    if (factor.kind == FactorKind::Reduction && !axes.empty()) {
      transfer.unreduced.append(axes);
      transfer.kind = factor.reduction;
    }

  for (const ShardingRule::DimFactors &factors : rule.summed) {
    AxisList &axes = transfer.summed.emplace_back();
    for (int64_t factor : factors)
      axes.append(factorAxes[factor]);
  }

  SmallVector<unsigned, 2> partial;
  for (auto [index, operand] : llvm::enumerate(operands))
    if (!operand->unreduced.empty() && !llvm::is_contained(rule.addends, index))
      partial.push_back(index);
  if (!partial.empty()) {
    const TensorSharding &first = *operands[partial.front()];
    auto isShardedOver = [&](unsigned axis) {
      return llvm::any_of(factorAxes, [&](const AxisList &axes) { return llvm::is_contained(axes, axis); });
    };
    bool linear = llvm::is_contained(rule.linear, partial) && transfer.kind == ReductionKind::sum &&
                  llvm::none_of(first.unreduced, isShardedOver) && llvm::all_of(partial, [&](unsigned index) {
                    return operands[index]->unreduced == first.unreduced && operands[index]->kind == ReductionKind::sum;
                  });
    if (linear)
      transfer.unreduced.append(first.unreduced);
    else
      transfer.mustReduce.assign(partial.begin(), partial.end());
  }
  llvm::sort(transfer.unreduced);
  for (unsigned index : rule.addends) {
    const TensorSharding &addend = *operands[index];
    if (addend.unreduced == transfer.unreduced && addend.kind == ReductionKind::sum)
      continue;
    if (addend.unreduced.empty())
      transfer.addendIsWhole = true;
    else
      transfer.mustReduce.push_back(index);
  }
  return transfer;
}
