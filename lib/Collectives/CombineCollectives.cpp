//===- CombineCollectives.cpp - Few large all-reduces ---------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "nd/Collectives/Passes.h"
#include "nd/Dialect/ND/IR/ND.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"

namespace nd {
#define GEN_PASS_DEF_COMBINECOLLECTIVES
#include "nd/Collectives/Passes.h.inc"
} // namespace nd

using namespace mlir;
using namespace nd;

namespace {

/// All-reduces of numbers (losses, counts, norms) are their own class: small, and often waited for at once.
bool isCandidate(Operation &op) {
  auto reduce = dyn_cast<AllReduceOp>(op);
  return reduce && !llvm::all_of(reduce.getInputs(), [](Value input) {
           return cast<RankedTensorType>(input.getType()).getNumElements() == 1;
         });
}

/// Collects all-reduces of one block in program order. Invariants between two operations of the walk:
///  - `pending` holds all-reduces that can become one collective, none of which depends on another;
///  - `waiting` holds, in order, every operation seen so far that depends on one of `pending`, and none of them is a
///  candidate.
/// Completing a collective puts it where the walk stands, and the waiting operations behind it.
class Combiner {
public:
  Combiner(Block &block, int64_t bucketBytes) : block(block), bucketBytes(bucketBytes) {}

  void run() {
    findFeeding();
    for (Operation &op : llvm::make_early_inc_range(block)) {
      bool waits = dependsOnPending(op);
      if (op.hasTrait<OpTrait::IsTerminator>() || (waits && feedsCandidate.contains(&op))) {
        complete(&op);
        waits = false;
      }
      if (isCandidate(op))
        add(cast<AllReduceOp>(op));
      else if (waits)
        waiting.insert(&op);
    }
  }

private:
  /// Candidates, and the operations that one depends on.
  void findFeeding() {
    for (Operation &op : llvm::reverse(block))
      if (isCandidate(op) ||
          llvm::any_of(op.getUsers(), [&](Operation *user) { return feedsCandidate.contains(user); }))
        feedsCandidate.insert(&op);
  }

  bool dependsOnPending(Operation &op) const {
    return llvm::any_of(op.getOperands(), [&](Value operand) {
      Operation *source = operand.getDefiningOp();
      return source && (waiting.contains(source) || llvm::is_contained(pending, source));
    });
  }

  void add(AllReduceOp op) {
    if (!pending.empty() && !fits(op))
      complete(op);
    pending.push_back(op);
    pendingBytes += op.getPayloadBytes();
    if (pendingBytes >= bucketBytes)
      complete(op->getNextNode());
  }

  bool fits(AllReduceOp op) {
    AllReduceOp first = pending.front();
    auto elementType = [](AllReduceOp reduce) {
      return cast<RankedTensorType>(reduce.getInputs().front().getType()).getElementType();
    };
    return first.getKind() == op.getKind() && first.getMesh() == op.getMesh() && first.getAxes() == op.getAxes() &&
           elementType(first) == elementType(op) && pendingBytes + op.getPayloadBytes() <= bucketBytes;
  }

  /// Makes one collective of what is pending, before `point`.
  void complete(Operation *point) {
    if (pending.size() > 1) {
      merge(point);
      for (Operation *op : waiting)
        op->moveBefore(point);
    }
    pending.clear();
    waiting.clear();
    pendingBytes = 0;
  }

  void merge(Operation *point) {
    SmallVector<Value> inputs, results;
    SmallVector<Attribute> names;
    SmallVector<Location> locations;
    for (AllReduceOp op : pending) {
      llvm::append_range(inputs, op.getInputs());
      llvm::append_range(results, op.getResults());
      llvm::append_range(names, op.getNames());
      locations.push_back(op.getLoc());
    }
    OpBuilder builder(point);
    AllReduceOp first = pending.front();
    llvm::SmallSetVector<StringRef, 4> reasons;
    for (AllReduceOp op : pending)
      reasons.insert(op.getReason());
    std::string reason = llvm::join(reasons, "; ");
    auto combined =
        AllReduceOp::create(builder, builder.getFusedLoc(locations), first.getKind(), inputs, first.getMesh(),
                            first.getAxes(), first.getInstance(), reason, builder.getArrayAttr(names));
    for (auto [old, result] : llvm::zip_equal(results, combined.getResults()))
      old.replaceAllUsesWith(result);
    for (AllReduceOp op : pending)
      op.erase();
  }

  Block &block;
  int64_t bucketBytes;
  DenseSet<Operation *> feedsCandidate;
  SmallVector<AllReduceOp> pending;
  llvm::SetVector<Operation *> waiting;
  int64_t pendingBytes = 0;
};

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
        Combiner(block, bucketBytes).run();
  }
};

} // namespace
