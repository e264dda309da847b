//===- LocalVerifierAttention.cpp - Attention's parts, followed -----------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// What an attention says of its part of the sequence and of the heads has to be what its operands are; in a ring, the
// keys of step j are those of the rank j before, and so are their gradients. Together the steps see every key that any
// query can see, and none twice. The sequence has one order: that in which the inputs are stored.
//
//===----------------------------------------------------------------------===//

#include "Partition/RingSchedule.h"
#include "Verify/LocalVerifier.h"
#include "nd/Dialect/ND/IR/Names.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace nd;

namespace {

bool lists(std::optional<ArrayAttr> axes, StringAttr axis) {
  return axes && llvm::is_contained(*axes, Attribute(axis));
}

std::string listOf(ArrayRef<int64_t> numbers) {
  return llvm::join(llvm::map_range(numbers, [](int64_t number) { return std::to_string(number); }), ", ");
}

/// Whether it asks where a query or a key stands.
template <typename AttentionLike> bool knowsPlaces(AttentionLike op) {
  return op.getCausal() || op.getWindow() || op.getValid();
}

bool knowsPlaces(Operation *op) {
  auto attention = dyn_cast<AttentionOp>(op);
  return attention ? knowsPlaces<AttentionOp>(attention) : knowsPlaces<AttentionGradOp>(cast<AttentionGradOp>(op));
}

template <typename AttentionLike> bool isStep(AttentionLike op) { return op.getKeyShards() != 1 && !op.isRing(); }

/// The steps that were made, which have to be those that are needed.
template <typename AttentionLike>
LogicalResult compareSteps(AttentionLike op, SmallVector<int64_t> steps, StringRef what) {
  llvm::sort(steps);
  SmallVector<int64_t> needed = neededRingSteps(op);
  if (steps == needed)
    return success();
  return op.emitOpError() << what << " the ring's steps [" << listOf(steps)
                          << "], but its queries see keys of the steps [" << listOf(needed) << ']';
}

} // namespace

LogicalResult LocalVerifier::verifyOrder() {
  auto text = [](DenseI64ArrayAttr order) {
    return order ? "the order [" + listOf(order.asArrayRef()) + "]" : std::string("the natural order");
  };
  std::optional<std::pair<DenseI64ArrayAttr, std::string>> stored;
  auto compare = [&](DenseI64ArrayAttr order, const std::string &who, Operation *op) -> LogicalResult {
    if (!stored)
      stored = {order, who};
    if (order == stored->first)
      return success();
    return op->emitError() << who << " has the sequence in " << text(order) << ", but " << stored->second << " in "
                           << text(stored->first);
  };
  for (BlockArgument argument : program.getBody().getArguments()) {
    unsigned index = argument.getArgNumber();
    if (!program.function.getArgAttr(index, names::kSequence))
      continue;
    auto chunks = program.function.getArgAttrOfType<DictionaryAttr>(index, names::kChunks);
    if (failed(compare(chunks ? chunks.getAs<DenseI64ArrayAttr>("order") : DenseI64ArrayAttr(), describe(argument),
                       program.function)))
      return failure();
  }
  WalkResult walked = program.function.walk([&](Operation *op) {
    if (!stored || !isa<AttentionOp, AttentionGradOp>(op) || !knowsPlaces(op))
      return WalkResult::advance();
    return WalkResult(
        compare(op->getAttrOfType<DenseI64ArrayAttr>("order"), "'" + op->getName().getStringRef().str() + "'", op));
  });
  return success(!walked.wasInterrupted());
}

LogicalResult LocalVerifier::verifyRings() {
  // Gradients of one attention, by what they differentiate.
  llvm::MapVector<std::pair<Value, Value>, SmallVector<AttentionGradOp>> gradients;
  WalkResult walked = program.function.walk([&](Operation *op) {
    if (auto gradient = dyn_cast<AttentionGradOp>(op); gradient && isStep(gradient))
      gradients[{gradient.getLse(), gradient.getResultGrad()}].push_back(gradient);
    auto last = dyn_cast<AttentionOp>(op);
    auto isCarried = [&](OpOperand &use) {
      auto next = dyn_cast<AttentionOp>(use.getOwner());
      return next && next.getCarryResult() == use.get();
    };
    if (!last || !isStep(last) ||
        (!last.getResult().use_empty() && llvm::all_of(last.getResult().getUses(), isCarried)))
      return WalkResult::advance();
    SmallVector<int64_t> steps;
    for (AttentionOp step = last; step;) {
      steps.push_back(step.getRingStep());
      Value carry = step.getCarryResult();
      step = carry ? carry.getDefiningOp<AttentionOp>() : AttentionOp();
      if (carry && !step)
        return WalkResult::advance(); // what it carries is unknown
    }
    return failed(compareSteps(last, steps, "merges")) ? WalkResult::interrupt() : WalkResult::advance();
  });
  if (walked.wasInterrupted())
    return failure();
  for (auto &[key, ops] : gradients)
    if (failed(compareSteps(
            ops.front(),
            llvm::map_to_vector(ops, [](AttentionGradOp op) { return static_cast<int64_t>(op.getRingStep()); }),
            "has gradients of")))
      return failure();
  return success();
}

template <typename AttentionLike> FailureOr<bool> LocalVerifier::visitAttention(AttentionLike op, unsigned axis) {
  StringAttr name = mesh.getName(axis);
  bool inSequence = lists(op.getSeqAxes(), name), inHeads = lists(op.getHeadAxes(), name);
  const State &query = states.find(op.getQuery())->second;
  if (query.kind == State::Kind::Unknown)
    return false;
  // Of a shard whose dimension is one of several (a batch of one, reshaped) either answer fits.
  auto mayBeShardOf = [](const State &state, int64_t dim) {
    return state.kind == State::Kind::Shard && state.dims.test(dim);
  };
  auto contradicts = [&](const State &state, int64_t dim, bool expected) {
    bool maybe = mayBeShardOf(state, dim);
    return expected ? !maybe : maybe && state.dims.count() == 1;
  };
  if (contradicts(query, 2, inSequence))
    return error(op, axis) << "the query is " << query.str() << ", but seq_axes "
                           << (inSequence ? "names" : "does not name")
                           << " the axis: queries would take places that are not theirs";
  if (op.getKvMap() && contradicts(query, 1, inHeads))
    return error(op, axis) << "the query is " << query.str() << ", but head_axes "
                           << (inHeads ? "names" : "does not name")
                           << " the axis: queries would read the heads of others";
  // A shift is known along a single axis.
  if (!inSequence || op.getKeyShards() == 1 || op.getSeqAxes()->size() != 1)
    return false;
  int64_t step = op.getRingStep();
  llvm::SmallBitVector sequence(4);
  sequence.set(2);
  auto whole = {op.getPositions(), op.getDocuments(), op.getKeyPadding()};
  for (auto [index, operand] : llvm::enumerate(op->getOperands())) {
    const State &state = states.find(operand)->second;
    bool isWhole = llvm::is_contained(whole, operand) || operand == op.getMask();
    State wanted{isWhole ? State::Kind::Same : State::Kind::Shard,
                 isWhole ? llvm::SmallBitVector() : sequence,
                 {},
                 index == 1 || index == 2 ? step : 0};
    if (state.kind == State::Kind::Unknown)
      continue;
    if (isWhole ? state.kind != wanted.kind : !mayBeShardOf(state, 2) || state.shift != wanted.shift)
      return error(op, axis) << "operand " << index << " of '" << op->getName() << "' is " << state.str()
                             << ", but has to be " << wanted.str() << " at step " << step << " of the ring";
  }
  for (auto [index, result] : llvm::enumerate(op->getResults())) {
    bool ofKeys = isa<AttentionGradOp>(op) && index != 0;
    llvm::SmallBitVector dims(cast<RankedTensorType>(result.getType()).getRank());
    dims.set(2);
    states[result] = {State::Kind::Shard, dims, {}, ofKeys ? step : 0};
  }
  return true;
}

FailureOr<bool> LocalVerifier::visitAttention(Operation *op, unsigned axis) {
  if (auto attention = dyn_cast<AttentionOp>(op))
    return visitAttention<AttentionOp>(attention, axis);
  if (auto gradient = dyn_cast<AttentionGradOp>(op))
    return visitAttention<AttentionGradOp>(gradient, axis);
  return false;
}
