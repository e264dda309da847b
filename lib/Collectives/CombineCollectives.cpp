//===- CombineCollectives.cpp - Few large collectives ---------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "nd/Collectives/Passes.h"
#include "nd/Dialect/ND/IR/MicrobatchLoop.h"
#include "nd/Dialect/ND/IR/Names.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"

namespace nd {
#define GEN_PASS_DEF_COMBINECOLLECTIVES
#include "nd/Collectives/Passes.h.inc"
} // namespace nd

using namespace mlir;
using namespace nd;

namespace {

Type elementTypeOf(Operation *op) { return cast<RankedTensorType>(op->getOperand(0).getType()).getElementType(); }

/// All-reduces of numbers (losses, counts, norms) are their own class: small, and often waited for at once.
bool isOfNumbers(Operation *op) {
  return isa<AllReduceOp>(op) && llvm::all_of(op->getOperands(), [](Value input) {
           return cast<RankedTensorType>(input.getType()).getNumElements() == 1;
         });
}

/// A gradient is for the update, and the last of a bucket holds up the others; the loss must not wait for that.
bool isOfGradients(Operation *op) {
  auto names = op->getAttrOfType<ArrayAttr>("names");
  return names && llvm::all_of(names.getAsRange<StringAttr>(),
                               [](StringAttr name) { return name.getValue().starts_with("gradient of "); });
}

/// What collectives that become one have in common; null for what stays alone. What runs once per microbatch is no part
/// of what runs once a step.
Attribute keyOf(Operation &op, const MicrobatchLoop &loop) {
  if (!isa<AllReduceOp, AllGatherOp, ReduceScatterOp>(op) || isOfNumbers(&op))
    return {};
  Builder builder(op.getContext());
  auto kind = op.getAttrOfType<ReductionKindAttr>("kind");
  return builder.getArrayAttr({builder.getStringAttr(op.getName().getStringRef()), op.getAttr("mesh"),
                               op.getAttr("axes"), TypeAttr::get(elementTypeOf(&op)),
                               kind ? Attribute(kind) : builder.getUnitAttr(), builder.getBoolAttr(isOfGradients(&op)),
                               op.getDiscardableAttrDictionary(),
                               builder.getI64IntegerAttr(static_cast<int64_t>(loop.getPart(&op)))});
}

int64_t payloadBytes(Operation *op) {
  return llvm::TypeSwitch<Operation *, int64_t>(op)
      .Case<AllReduceOp, AllGatherOp, ReduceScatterOp>([](auto collective) { return collective.getPayloadBytes(); })
      .Default([](Operation *) -> int64_t { return 0; });
}

/// One collective with all operands, before `point`, in place of these.
void merge(ArrayRef<Operation *> collectives, Operation *point) {
  SmallVector<Value> inputs, results;
  SmallVector<Type> types;
  SmallVector<Attribute> names;
  SmallVector<int64_t> dims;
  SmallVector<Location> locations;
  llvm::SmallSetVector<StringRef, 4> reasons;
  for (Operation *op : collectives) {
    llvm::append_range(inputs, op->getOperands());
    llvm::append_range(results, op->getResults());
    llvm::append_range(types, op->getResultTypes());
    llvm::append_range(names, op->getAttrOfType<ArrayAttr>("names"));
    if (auto list = op->getAttrOfType<DenseI64ArrayAttr>("dims"))
      llvm::append_range(dims, list.asArrayRef());
    locations.push_back(op->getLoc());
    reasons.insert(op->getAttrOfType<StringAttr>("reason").getValue());
  }
  OpBuilder builder(point);
  Operation *first = collectives.front();
  OperationState state(builder.getFusedLoc(locations), first->getName(), inputs, types, first->getAttrs());
  state.attributes.set("names", builder.getArrayAttr(names));
  state.attributes.set("reason", builder.getStringAttr(llvm::join(reasons, "; ")));
  if (first->hasAttr("dims"))
    state.attributes.set("dims", builder.getDenseI64ArrayAttr(dims));
  Operation *combined = builder.create(state);
  for (auto [old, result] : llvm::zip_equal(results, combined->getResults()))
    old.replaceAllUsesWith(result);
  for (Operation *op : collectives)
    op->erase();
}

/// Collects the collectives of one key in one block, in program order. Invariants between two operations of the walk:
///  - `pending` holds collectives that can become one, none of which depends on another;
///  - `waiting` holds, in order, every operation seen so far that depends on one of `pending`, and none of them is a
///    candidate; the first `ahead` of them stand before the last of `pending`.
/// A collective stands where its last part did, and the operations ahead move behind it.
class Combiner {
public:
  Combiner(Block &block, ArrayRef<Operation *> candidates, int64_t bucketBytes)
      : block(block), candidates(candidates.begin(), candidates.end()), bucketBytes(bucketBytes) {}

  void run() {
    findFeeding();
    for (Operation &op : llvm::make_early_inc_range(block)) {
      bool waits = dependsOnPending(op);
      if (op.hasTrait<OpTrait::IsTerminator>() || (waits && completesBefore(op))) {
        complete();
        waits = false;
      }
      if (candidates.contains(&op))
        add(&op);
      else if (waits)
        waiting.insert(&op);
    }
  }

private:
  /// Candidates, and the operations that one depends on.
  void findFeeding() {
    for (Operation &op : llvm::reverse(block))
      if (candidates.contains(&op) ||
          llvm::any_of(op.getUsers(), [&](Operation *user) { return feedsCandidate.contains(user); }))
        feedsCandidate.insert(&op);
  }

  /// A gather is there for its readers: none is held up for more gathers.
  bool completesBefore(Operation &op) const {
    return feedsCandidate.contains(&op) || isa<AllGatherOp>(pending.front());
  }

  bool dependsOnPending(Operation &op) const {
    return llvm::any_of(op.getOperands(), [&](Value operand) {
      Operation *source = operand.getDefiningOp();
      return source && (waiting.contains(source) || pending.contains(source));
    });
  }

  void add(Operation *op) {
    int64_t bytes = payloadBytes(op);
    if (!pending.empty() && pendingBytes + bytes > bucketBytes)
      complete();
    pending.insert(op);
    ahead = waiting.size();
    pendingBytes += bytes;
    if (pendingBytes >= bucketBytes)
      complete();
  }

  /// Makes one collective of what is pending.
  void complete() {
    // What is merged away must leave the sets: an operation that is made later may have its address.
    for (Operation *op : pending) {
      candidates.erase(op);
      feedsCandidate.erase(op);
    }
    if (pending.size() > 1) {
      Operation *point = pending.back()->getNextNode();
      merge(pending.getArrayRef(), point);
      for (Operation *op : waiting.getArrayRef().take_front(ahead))
        op->moveBefore(point);
    }
    pending.clear();
    waiting.clear();
    pendingBytes = 0;
    ahead = 0;
  }

  Block &block;
  DenseSet<Operation *> candidates;
  int64_t bucketBytes;
  DenseSet<Operation *> feedsCandidate;
  llvm::SetVector<Operation *> pending, waiting;
  int64_t pendingBytes = 0;
  size_t ahead = 0;
};

/// Collects what gathers of a unit read that stands behind the first of them, and moves it there in one go: asking for
/// the order of operations between moves numbers the whole block anew.
class OperandHoister {
public:
  explicit OperandHoister(Operation *point) : point(point) {}

  /// Fails, and takes nothing, where `op` reads more than other forms of what is there already (a shard in the type of
  /// computation, padded...).
  bool add(Operation *op) {
    size_t before = taken.size();
    if (llvm::all_of(op->getOperands(), [&](Value operand) { return visit(operand.getDefiningOp()); }))
      return true;
    while (taken.size() > before)
      taken.pop_back();
    return false;
  }

  void move() {
    for (Operation *op : taken)
      op->moveBefore(point);
  }

private:
  bool visit(Operation *source) {
    if (!source || taken.contains(source) || source->isBeforeInBlock(point))
      return true;
    if (!isa<arith::ConstantOp, arith::TruncFOp, arith::ExtFOp, ReshapeOp, TransposeOp, SliceOp, BroadcastOp, PadOp,
             AllSliceOp>(source) ||
        !llvm::all_of(source->getOperands(), [&](Value operand) { return visit(operand.getDefiningOp()); }))
      return false;
    taken.insert(source);
    return true;
  }

  Operation *point;
  llvm::SetVector<Operation *> taken; ///< what is read before what reads it
};

/// Gathers of a unit are one, of any size, where the first of them stands, as far as their operands are there.
void combineUnit(ArrayRef<Operation *> gathers) {
  while (!gathers.empty()) {
    OperandHoister operands(gathers.front());
    auto together = gathers.drop_front().take_while([&](Operation *op) { return operands.add(op); });
    size_t count = 1 + together.size();
    if (count > 1) {
      operands.move();
      merge(gathers.take_front(count), gathers.front());
    }
    gathers = gathers.drop_front(count);
  }
}

LogicalResult combine(Block &block, int64_t bucketBytes) {
  FailureOr<MicrobatchLoop> loop = MicrobatchLoop::get(block);
  if (failed(loop))
    return failure();
  // Apart from the beginning: what has been merged away can be asked for nothing any more.
  llvm::MapVector<Attribute, SmallVector<Operation *>> scatters, others;
  for (Operation &op : block)
    if (Attribute key = keyOf(op, *loop))
      (isa<ReduceScatterOp>(op) ? scatters : others)[key].push_back(&op);
  // Scatters first: what becomes of their results then stands together.
  for (auto *byKey : {&scatters, &others})
    for (auto &[key, collectives] : *byKey) {
      if (collectives.size() == 1)
        continue;
      if (isa<AllGatherOp>(collectives.front()) && collectives.front()->hasAttr(names::kUnit))
        combineUnit(collectives);
      else
        Combiner(block, collectives, bucketBytes).run();
    }
  return success();
}

struct CombineCollectives : nd::impl::CombineCollectivesBase<CombineCollectives> {
  using CombineCollectivesBase::CombineCollectivesBase;

  void runOnOperation() override {
    if (bucketBytes < 1) {
      getOperation().emitError() << "nd-combine-collectives: bucket-bytes=" << bucketBytes.getValue()
                                 << ", but a collective has at "
                                 << "least 1 byte";
      return signalPassFailure();
    }
    for (auto function : getOperation().getOps<func::FuncOp>())
      for (Block &block : function.getBody())
        if (failed(combine(block, bucketBytes)))
          return signalPassFailure();
  }
};

} // namespace
