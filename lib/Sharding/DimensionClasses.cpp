//===- DimensionClasses.cpp - Dimensions that are one thing ---------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "DimensionClasses.h"

using namespace mlir;
using namespace nd;

using Id = DimensionClasses::Id;
using Ids = DimensionClasses::Ids;

Id DimensionClasses::create(int64_t size) {
  Id id = nodes.size();
  nodes.push_back({size, id});
  return id;
}

Id DimensionClasses::find(Id id) const {
  while (nodes[id].parent != id) {
    nodes[id].parent = nodes[nodes[id].parent].parent;
    id = nodes[id].parent;
  }
  return id;
}

void DimensionClasses::appendLeaves(Id id, Ids &leaves) const {
  id = find(id);
  if (nodes[id].major != 0) {
    appendLeaves(nodes[id].major, leaves);
    appendLeaves(nodes[id].minor, leaves);
  } else if (nodes[id].size != 1) {
    leaves.push_back(id);
  }
}

Ids DimensionClasses::leavesOf(ArrayRef<Id> ids) const {
  Ids leaves;
  for (Id id : ids)
    appendLeaves(id, leaves);
  return leaves;
}

Id DimensionClasses::firstDimOf(Value value) {
  auto [it, inserted] = values.try_emplace(value, nodes.size());
  if (inserted)
    for (int64_t size : cast<RankedTensorType>(value.getType()).getShape())
      create(size);
  return it->second;
}

void DimensionClasses::merge(Id a, Id b) {
  nodes[b].parent = a;
  nodes[a].tangled |= nodes[b].tangled;
}

void DimensionClasses::split(Id id, int64_t majorSize) {
  int64_t minorSize = nodes[id].size / majorSize;
  bool tangled = nodes[id].tangled;
  Id major = create(majorSize), minor = create(minorSize);
  nodes[major].tangled = nodes[minor].tangled = tangled;
  nodes[id].major = major;
  nodes[id].minor = minor;
}

void DimensionClasses::unify(ArrayRef<Id> a, ArrayRef<Id> b) {
  Ids left = leavesOf(a), right = leavesOf(b);
  size_t i = 0, j = 0;
  // A split can change both lists behind the current position, so they are read again; positions stay valid, since
  // everything before them is equal in both.
  auto refine = [&](Id id, int64_t majorSize) {
    split(id, majorSize);
    left = leavesOf(a);
    right = leavesOf(b);
  };
  while (i < left.size() && j < right.size()) {
    Id x = left[i], y = right[j];
    int64_t xSize = nodes[x].size, ySize = nodes[y].size;
    if (xSize == ySize) {
      if (x != y)
        merge(std::min(x, y), std::max(x, y));
      left = leavesOf(a);
      right = leavesOf(b);
      ++i, ++j;
    } else if (xSize < ySize && ySize % xSize == 0) {
      refine(y, xSize);
    } else if (ySize < xSize && xSize % ySize == 0) {
      refine(x, ySize);
    } else {
      nodes[x].tangled = nodes[y].tangled = true;
      for (++i, ++j; xSize != ySize && (i < left.size() || j < right.size());) {
        bool isLeft = xSize < ySize;
        Id next = isLeft ? left[i++] : right[j++];
        nodes[next].tangled = true;
        (isLeft ? xSize : ySize) *= nodes[next].size;
      }
    }
  }
}

void DimensionClasses::add(Operation *op, const ShardingRule &rule) {
  Id first = nodes.size();
  operations[op] = first;
  for (const Factor &factor : rule.factors)
    create(factor.size);
  auto tieTensor = [&](Value value, const ShardingRule::TensorFactors &dims) {
    Id dimNode = firstDimOf(value);
    for (const ShardingRule::DimFactors &factors : dims) {
      Ids list = llvm::to_vector<2>(llvm::map_range(factors, [&](int64_t factor) { return Id(first + factor); }));
      unify(list, {dimNode++});
    }
  };
  for (auto [value, dims] : llvm::zip_equal(op->getOperands(), rule.operands))
    tieTensor(value, dims);
  for (auto [value, dims] : llvm::zip_equal(op->getResults(), rule.results))
    tieTensor(value, dims);
}

void DimensionClasses::tie(Value a, Value b) {
  Id first = firstDimOf(a), second = firstDimOf(b);
  for (int64_t dim : llvm::seq(cast<RankedTensorType>(a.getType()).getRank()))
    unify({static_cast<Id>(first + dim)}, {static_cast<Id>(second + dim)});
}

Ids DimensionClasses::getDim(Value value, int64_t dim) const {
  auto it = values.find(value);
  return it == values.end() ? Ids() : leavesOf({static_cast<Id>(it->second + dim)});
}

Ids DimensionClasses::getFactor(Operation *op, unsigned factor) const {
  auto it = operations.find(op);
  return it == operations.end() ? Ids() : leavesOf({it->second + factor});
}
