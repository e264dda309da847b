//===- LocalVerifierCollectives.cpp - States through collectives ----------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Verify/LocalVerifier.h"

using namespace mlir;
using namespace nd;

static int64_t rankOf(Value value) { return cast<RankedTensorType>(value.getType()).getRank(); }

/// The block of each dimension that a rank with these coordinates holds.
static SmallVector<int64_t> blockOf(MeshSizes mesh, const TensorSharding &sharding, ArrayRef<int64_t> coordinates) {
  SmallVector<int64_t> block;
  for (const AxisList &axes : sharding.dims) {
    int64_t index = 0;
    for (unsigned axis : axes)
      index = index * mesh[axis] + coordinates[axis];
    block.push_back(index);
  }
  return block;
}

/// A permutation between two shardings: every rank must receive from one that has the block it needs.
LogicalResult LocalVerifier::verifyPermutation(PermuteOp op) {
  if (!op.getBefore())
    return success();
  MeshSizes sizes = mesh.getSizes();
  FailureOr<TensorSharding> before = mesh.fromAxes(*op.getBefore(), "the tensor", [&] { return op.emitError(); });
  FailureOr<TensorSharding> after = mesh.fromAxes(*op.getAfter(), "the tensor", [&] { return op.emitError(); });
  FailureOr<AxisList> group = mesh.axesOf(op.getAxes(), [&] { return op.emitError(); });
  if (failed(before) || failed(after) || failed(group))
    return failure();
  if (before->unreduced != after->unreduced || before->kind != after->kind)
    return op.emitError() << "a permute does not reduce, but goes from " << *op.getBefore() << " to " << *op.getAfter();
  for (auto [dim, axes] : llvm::enumerate(before->dims))
    if (numShards(sizes, axes) != numShards(sizes, after->dims[dim]))
      return op.emitError() << "a permute keeps the number of shards, but goes from " << *op.getBefore() << " to "
                            << *op.getAfter() << " in dimension " << dim;
  int64_t ranks = 1;
  for (int64_t size : sizes)
    ranks *= size;
  for (int64_t rank : llvm::seq(ranks)) {
    SmallVector<int64_t> coordinates(sizes.size());
    int64_t rest = rank;
    for (size_t axis = sizes.size(); axis-- > 0; rest /= sizes[axis])
      coordinates[axis] = rest % sizes[axis];
    int64_t position = 0;
    for (unsigned axis : *group)
      position = position * sizes[axis] + coordinates[axis];
    SmallVector<int64_t> source(coordinates);
    int64_t from = op.getSources()[position];
    for (unsigned axis : llvm::reverse(*group)) {
      source[axis] = from % sizes[axis];
      from /= sizes[axis];
    }
    if (blockOf(sizes, *before, source) != blockOf(sizes, *after, coordinates))
      return op.emitError() << "rank " << rank << " does not receive its block of " << *op.getAfter()
                            << " from position " << op.getSources()[position] << ", which has a block of "
                            << *op.getBefore();
  }
  return success();
}

LocalVerifier::State LocalVerifier::throughPermute(PermuteOp op, const State &state, unsigned axis) {
  int64_t size = mesh.getSizes()[axis];
  ArrayRef<int64_t> sources = op.getSources();
  // A ring: everyone receives from the rank `shift` places before it.
  int64_t shift = (size - sources[0]) % size;
  bool rotates = op.getAxes().size() == 1;
  for (auto [position, source] : llvm::enumerate(sources))
    rotates &= (source + shift) % size == static_cast<int64_t>(position);
  if (state.kind == State::Kind::Same)
    return state;
  if (!rotates || state.kind != State::Kind::Shard)
    return {State::Kind::Unknown, {}, {}};
  State result = state;
  result.shift = (state.shift + shift) % size;
  return result;
}

FailureOr<LocalVerifier::State> LocalVerifier::throughCollective(Operation *op, unsigned index, const State &state,
                                                                 unsigned axis) {
  int64_t rank = rankOf(op->getResult(index));
  bool known = state.kind != State::Kind::Unknown;
  auto shard = [&](int64_t dim) { return State{State::Kind::Shard, onlyDim(rank, dim), {}}; };
  auto isShardOf = [&](int64_t dim) {
    return !known || (state.kind == State::Kind::Shard && state.dims.test(dim) && state.shift == 0);
  };
  // Copies of other ranks: which ones they are is not followed.
  if (state.copies != State::Copies::None && isa<PermuteOp, AllToAllOp>(op))
    return State{State::Kind::Unknown, {}, {}};
  if (auto gather = dyn_cast<AllGatherOp>(op)) {
    int64_t dim = gather.getDims()[index];
    if (!isShardOf(dim))
      return error(op, axis) << "gathers dimension " << dim << " of a tensor that is " << state.str();
    return State();
  }
  if (auto exchange = dyn_cast<AllToAllOp>(op)) {
    if (!isShardOf(exchange.getConcatDim()))
      return error(op, axis) << "joins dimension " << exchange.getConcatDim() << " of a tensor that is " << state.str();
    return shard(exchange.getSplitDim());
  }
  if (auto slice = dyn_cast<AllSliceOp>(op)) {
    if (known && state.kind != State::Kind::Same)
      return error(op, axis) << "cuts a shard out of a tensor that is " << state.str();
    return shard(slice.getDim());
  }
  if (auto permute = dyn_cast<PermuteOp>(op)) {
    if (!permute.getBefore())
      return throughPermute(permute, state, axis);
    auto along = [&](ShardingAttr sharding) -> std::optional<int64_t> {
      for (int64_t dim : llvm::seq(sharding.getRank()))
        if (llvm::is_contained(sharding.getDimAxes(dim), mesh.getName(axis)))
          return dim;
      return std::nullopt;
    };
    std::optional<int64_t> before = along(*permute.getBefore()), after = along(*permute.getAfter());
    if (known && (before ? !isShardOf(*before) : state.kind != State::Kind::Same))
      return error(op, axis) << "permutes a tensor that is " << state.str() << ", but says that it is sharded by "
                             << *permute.getBefore();
    return after ? shard(*after) : State();
  }
  ReductionKind kind = op->getAttrOfType<ReductionKindAttr>("kind").getValue();
  if (known && (state.kind != State::Kind::Partial || state.reduction != kind))
    return error(op, axis) << "combines (" << stringifyReductionKind(kind) << ") operand " << index << ", which is "
                           << state.str();
  if (auto scatter = dyn_cast<ReduceScatterOp>(op))
    return shard(scatter.getDims()[index]);
  return State();
}

LogicalResult LocalVerifier::visitCollective(Operation *op, unsigned axis) {
  bool overAxis = llvm::is_contained(op->getAttrOfType<ArrayAttr>("axes"), Attribute(mesh.getName(axis)));
  for (auto [index, operand] : llvm::enumerate(op->getOperands())) {
    const State state = states.find(operand)->second;
    if (overAxis) {
      FailureOr<State> after = throughCollective(op, index, state, axis);
      if (failed(after))
        return failure();
      states[op->getResult(index)] = *after;
      continue;
    }
    states[op->getResult(index)] = state;
    auto kind = op->getAttrOfType<ReductionKindAttr>("kind");
    if (kind && state.kind == State::Kind::Partial && state.reduction != kind.getValue())
      return error(op, axis) << "operand " << index << " is " << state.str()
                             << " and cannot be combined otherwise first";
  }
  return success();
}
