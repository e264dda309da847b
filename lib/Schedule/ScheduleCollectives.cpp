//===- ScheduleCollectives.cpp - When collectives start -------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Estimate.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "nd/Dialect/ND/IR/ND.h"
#include "nd/Dialect/ND/IR/Names.h"
#include "nd/Schedule/Passes.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"

namespace nd {
#define GEN_PASS_DEF_SCHEDULECOLLECTIVES
#include "nd/Schedule/Passes.h.inc"
} // namespace nd

using namespace mlir;
using namespace nd;

namespace {

bool isCollective(Operation *op) {
  return isa_and_nonnull<AllGatherOp, AllReduceOp, ReduceScatterOp, AllToAllOp, PermuteOp>(op);
}

bool isView(Operation *op) { return isa<ReshapeOp, TransposeOp, SliceOp>(op); }

/// Moves the gathers of units ahead. Units are in the order in which the program first reads them, and stay in it:
/// every rank starts the same collectives in the same order. Each unit's gathers stand before the first reader of a unit
/// before it, `prefetch` units back at most.
class GatherScheduler {
public:
  GatherScheduler(Block &block, int64_t prefetch, const Estimate *estimate)
      : block(block), prefetch(prefetch), estimate(estimate) {}

  void run() {
    for (Operation &op : block) {
      order[&op] = order.size();
      double seconds = estimate ? estimate->compute(&op) : 0;
      computed.push_back((computed.empty() ? 0 : computed.back()) + seconds);
      if (auto name = op.getAttrOfType<StringAttr>(names::kUnit))
        units[name].gathers.push_back(&op);
    }
    SmallVector<Unit *> sorted;
    for (auto &[name, unit] : units)
      if ((unit.reader = firstReader(unit)))
        sorted.push_back(&unit);
    llvm::stable_sort(sorted, [&](Unit *a, Unit *b) { return order.lookup(a->reader) < order.lookup(b->reader); });
    for (size_t index = 0; index < sorted.size(); ++index)
      move(*sorted[index], pointOf(sorted, index));
  }

private:
  struct Unit {
    SmallVector<Operation *> gathers; ///< and other collectives that give them their operands or finish them
    Operation *reader = nullptr;
  };

  /// The first operation that reads what the unit has gathered; views read nothing.
  Operation *firstReader(const Unit &unit) const {
    Operation *first = nullptr;
    SmallVector<Operation *> worklist(unit.gathers);
    while (!worklist.empty())
      for (Operation *user : worklist.pop_back_val()->getUsers()) {
        if (isView(user))
          worklist.push_back(user);
        else if (!llvm::is_contained(unit.gathers, user) && (!first || order.lookup(user) < order.lookup(first)))
          first = user;
      }
    return first;
  }

  /// Before the reader of the nearest unit from which on the products hide the unit's gathers.
  Operation *pointOf(ArrayRef<Unit *> sorted, size_t index) const {
    if (index == 0)
      return &block.front();
    size_t most = std::min<size_t>(index, prefetch), ahead = 1;
    if (estimate) {
      double needed = 0;
      for (Operation *op : sorted[index]->gathers)
        needed += estimate->gather(op);
      while (ahead < most && before(sorted[index]->reader) - before(sorted[index - ahead]->reader) < needed)
        ++ahead;
    }
    return sorted[index - ahead]->reader;
  }

  double before(Operation *op) const { return computed[order.lookup(op)]; }

  /// Moves the unit's gathers before `point`, with the operations between that they need. Where these need more than
  /// arguments and what is computed before `point`, nothing moves.
  void move(const Unit &unit, Operation *point) {
    llvm::SmallVector<Operation *> needed;
    llvm::DenseSet<Operation *> seen;
    bool isFree = true;
    std::function<void(Operation *)> visit = [&](Operation *op) {
      if (!op || (point != op && op->isBeforeInBlock(point)) || !seen.insert(op).second)
        return;
      isFree &= isMemoryEffectFree(op) && (isView(op) || op->hasAttr(names::kUnit) || isConversion(op));
      for (Value operand : op->getOperands())
        visit(operand.getDefiningOp());
      needed.push_back(op);
    };
    for (Operation *op : unit.gathers)
      visit(op);
    if (!isFree)
      return;
    for (Operation *op : needed) {
      if (op == point)
        point = point->getNextNode();
      op->moveBefore(point);
    }
  }

  /// Of a parameter's shard into the type of computation; padding of one that does not divide.
  static bool isConversion(Operation *op) {
    return isa<arith::TruncFOp, arith::ExtFOp, PadOp, arith::ConstantOp, AllSliceOp, BroadcastOp>(op);
  }

  Block &block;
  int64_t prefetch;
  const Estimate *estimate;
  llvm::DenseMap<Operation *, size_t> order;
  std::vector<double> computed; ///< seconds up to and with each operation
  llvm::MapVector<StringAttr, Unit> units;
};

/// Holds back what reads reductions that no product waits for. Invariants while the block is written anew:
///  - `held` are operations in program order, each of which reads one of `held` or a reduction that too few others have
///    started behind;
///  - what is held reads nothing that comes later, and nothing but what is held reads it.
class ReaderScheduler {
public:
  ReaderScheduler(Block &block, int64_t prefetch) : block(block), prefetch(prefetch) {}

  void run() {
    findWork();
    SmallVector<Operation *> before;
    for (Operation &op : block.without_terminator())
      before.push_back(&op);
    for (Operation *op : before) {
      if (mustWait(op)) {
        holding.insert(op);
        held.push_back(op);
        continue;
      }
      op->moveBefore(block.getTerminator());
      if (isDeferrable(op)) {
        ++started;
        startedAt[op] = started;
        release();
      }
    }
    for (Operation *op : held)
      op->moveBefore(block.getTerminator());
  }

private:
  /// What a product or attention needs must not wait.
  void findWork() {
    for (Operation &op : llvm::reverse(block))
      if (llvm::any_of(op.getUsers(), [&](Operation *user) {
            return feedsWork.contains(user) || isa<DotGeneralOp, AttentionOp, AttentionGradOp, ScatterAddOp>(user);
          }))
        feedsWork.insert(&op);
  }

  bool isDeferrable(Operation *op) const { return isCollective(op) && !feedsWork.contains(op); }

  /// Whether an operation reads what is held, or a reduction behind which too few others have started.
  bool mustWait(Operation *op) const {
    return llvm::any_of(op->getOperands(), [&](Value operand) {
      Operation *def = operand.getDefiningOp();
      if (!def)
        return false;
      auto it = startedAt.find(def);
      return holding.contains(def) || (it != startedAt.end() && started - it->second < prefetch);
    });
  }

  void release() {
    SmallVector<Operation *> still;
    for (Operation *op : held) {
      holding.erase(op);
      if (mustWait(op)) {
        holding.insert(op);
        still.push_back(op);
        continue;
      }
      op->moveBefore(block.getTerminator());
      // It counts as started with the one that released it: a chain of reductions does not release itself.
      if (isDeferrable(op))
        startedAt[op] = started;
    }
    held = std::move(still);
  }

  Block &block;
  int64_t prefetch;
  llvm::DenseSet<Operation *> feedsWork, holding;
  llvm::DenseMap<Operation *, int64_t> startedAt;
  SmallVector<Operation *> held;
  int64_t started = 0;
};

struct ScheduleCollectives : nd::impl::ScheduleCollectivesBase<ScheduleCollectives> {
  using ScheduleCollectivesBase::ScheduleCollectivesBase;

  void runOnOperation() override {
    if (prefetchUnits < 1) {
      getOperation().emitError() << "nd-schedule-collectives: prefetch-units=" << prefetchUnits.getValue()
                                 << ", but a gather starts at least 1 unit ahead";
      return signalPassFailure();
    }
    // One unit needs no estimate: a gather never starts later than that.
    std::unique_ptr<Estimate> estimate;
    if (prefetchUnits > 1 && failed(readSystem(estimate)))
      return signalPassFailure();
    names::setModuleEntry(getOperation(), names::kPlan, "prefetch_units",
                          Builder(&getContext()).getI64IntegerAttr(prefetchUnits));
    for (auto function : getOperation().getOps<func::FuncOp>())
      for (Block &block : function.getBody()) {
        GatherScheduler(block, prefetchUnits, estimate.get()).run();
        ReaderScheduler(block, prefetchUnits).run();
      }
  }

  LogicalResult readSystem(std::unique_ptr<Estimate> &estimate) {
    llvm::Expected<System> system = System::find(systemName);
    if (!system)
      return getOperation().emitError() << llvm::toString(system.takeError());
    SmallVector<PlacedAxis> axes;
    for (auto mesh : getOperation().getOps<MeshOp>())
      for (auto axis : mesh.getAxes().getAsRange<MeshAxisAttr>())
        axes.push_back({axis.getName().getValue().str(), axis.getSize()});
    llvm::Expected<NodeLayout> layout = NodeLayout::create(axes, *system, nodes);
    if (!layout)
      return getOperation().emitError() << llvm::toString(layout.takeError());
    estimate = std::make_unique<Estimate>(std::move(*system), std::move(*layout));
    return success();
  }
};

} // namespace
