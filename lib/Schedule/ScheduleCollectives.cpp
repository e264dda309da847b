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
#include "nd/Schedule/Placement.h"
#include "nd/Schedule/RingHops.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"

namespace nd {
#define GEN_PASS_DEF_SCHEDULECOLLECTIVES
#include "nd/Schedule/Passes.h.inc"
} // namespace nd

using namespace mlir;
using namespace nd;

namespace {

/// How many units ahead a gather starts.
constexpr llvm::StringLiteral kAhead = "nd.ahead";

bool isCollective(Operation *op) {
  return isa_and_nonnull<AllGatherOp, AllReduceOp, ReduceScatterOp, AllToAllOp, PermuteOp>(op);
}

bool isView(Operation *op) { return isa<ReshapeOp, TransposeOp, SliceOp>(op); }

/// Moves the gathers of units ahead. Units are in the order in which the program first reads them, and stay in it:
/// every rank starts the same collectives in the same order. Each unit's gathers stand before the first reader of a
/// unit before it, `prefetch` units back at most.
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
    // Units that one kernel reads first come into use together.
    SmallVector<Operation *> turns;
    for (Unit *unit : sorted) {
      if (turns.empty() || turns.back() != unit->reader)
        turns.push_back(unit->reader);
      size_t ahead = aheadOf(*unit, turns);
      move(*unit, turns.size() == 1 ? &block.front() : *(turns.end() - 1 - ahead));
      // Kernels and GEMMs say less of how long they take: what was decided before they are formed holds.
      for (Operation *op : unit->gathers)
        op->setAttr(kAhead, IntegerAttr::get(IntegerType::get(op->getContext(), 64), ahead));
    }
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

  /// How many units ahead a unit's gathers start: as few as hide them behind products. Its own turn is the last.
  size_t aheadOf(const Unit &unit, ArrayRef<Operation *> turns) const {
    size_t most = std::min<size_t>(turns.size() - 1, prefetch), ahead = std::min<size_t>(most, 1);
    if (auto decided = unit.gathers.front()->getAttrOfType<IntegerAttr>(kAhead))
      return std::clamp<size_t>(decided.getInt(), ahead, most);
    if (estimate) {
      double needed = 0;
      for (Operation *op : unit.gathers)
        needed += estimate->gather(op);
      while (ahead < most && before(unit.reader) - before(*(turns.end() - 1 - ahead)) < needed)
        ++ahead;
    }
    return ahead;
  }

  double before(Operation *op) const { return computed[order.lookup(op)]; }

  /// Moves the unit's gathers before `point`, with what they need that comes later, with the forms of shards that only
  /// they read, and with the views of their results that come earlier. Where they need more than other forms of
  /// arguments, nothing moves.
  void move(const Unit &unit, Operation *point) {
    SmallVector<Operation *> moved;
    llvm::DenseSet<Operation *> seen;
    bool isFree = true;
    std::function<void(Operation *)> visit = [&](Operation *op) {
      bool isGather = op && op->hasAttr(names::kUnit);
      if (!op || (!isGather && op != point && op->isBeforeInBlock(point)) || !seen.insert(op).second)
        return;
      isFree &= isGather || isView(op) || isConversion(op);
      for (Value operand : op->getOperands())
        visit(operand.getDefiningOp());
      moved.push_back(op);
    };
    for (Operation *op : unit.gathers)
      visit(op);
    if (!isFree)
      return;
    // A shard in the type of computation lives from right before its gather on.
    for (size_t next = 0; next < moved.size(); ++next)
      for (Value operand : moved[next]->getOperands())
        if (Operation *op = operand.getDefiningOp();
            op && (isView(op) || isConversion(op)) && !seen.contains(op) &&
            llvm::all_of(op->getUsers(), [&](Operation *user) { return seen.contains(user); })) {
          seen.insert(op);
          moved.push_back(op);
        }
    for (size_t next = 0; next < moved.size(); ++next)
      for (Operation *user : moved[next]->getUsers())
        if (isView(user) && user->isBeforeInBlock(point) && seen.insert(user).second)
          moved.push_back(user);
    while (seen.contains(point))
      point = point->getNextNode();
    llvm::sort(moved, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
    for (Operation *op : moved)
      op->moveBefore(point);
  }

  /// Of a parameter's shard into the type of computation; padding of one that does not divide.
  static bool isConversion(Operation *op) {
    if (auto kernel = dyn_cast<KernelOp>(op))
      return llvm::all_of(kernel.getBody().front(), [](Operation &inner) {
        return isa<YieldOp>(inner) || isView(&inner) || isConversion(&inner);
      });
    return isa<arith::TruncFOp, arith::ExtFOp, PadOp, arith::ConstantOp, AllSliceOp, BroadcastOp>(op);
  }

  Block &block;
  int64_t prefetch;
  const Estimate *estimate;
  llvm::DenseMap<Operation *, size_t> order;
  std::vector<double> computed; ///< seconds up to and with each operation
  llvm::MapVector<StringAttr, Unit> units;
};

/// As much as collectives of gradients combine.
constexpr int64_t kBucket = 32 << 20;

/// Holds back what reads reductions that no product waits for. Invariants while the block is written anew:
///  - `held` are operations in program order, each of which reads one of `held` or a reduction that too little has
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
        started += payloadBytes(op);
        startedAt[op] = started;
        release();
      }
    }
    for (Operation *op : held)
      op->moveBefore(block.getTerminator());
  }

private:
  static bool isWork(Operation *op) {
    if (auto kernel = dyn_cast<KernelOp>(op))
      return !kernel.getBody().getOps<ScatterAddOp>().empty();
    return isa<DotGeneralOp, GemmOp, AttentionOp, AttentionGradOp, ScatterAddOp>(op);
  }

  /// What a product or attention needs must not wait.
  void findWork() {
    for (Operation &op : llvm::reverse(block))
      if (llvm::any_of(op.getUsers(), [&](Operation *user) { return feedsWork.contains(user) || isWork(user); }))
        feedsWork.insert(&op);
  }

  bool isDeferrable(Operation *op) const { return isCollective(op) && !feedsWork.contains(op); }

  static int64_t payloadBytes(Operation *op) {
    return llvm::TypeSwitch<Operation *, int64_t>(op)
        .Case<AllReduceOp, AllGatherOp, ReduceScatterOp>([](auto collective) { return collective.getPayloadBytes(); })
        .Default([](Operation *) -> int64_t { return 0; });
  }

  /// Whether an operation reads what is held, or a reduction behind which too little else has started: as much as it
  /// moves itself, but no more than a bucket.
  bool mustWait(Operation *op) const {
    return llvm::any_of(op->getOperands(), [&](Value operand) {
      Operation *def = operand.getDefiningOp();
      if (!def)
        return false;
      auto it = startedAt.find(def);
      return holding.contains(def) ||
             (it != startedAt.end() && started - it->second < prefetch * std::min(payloadBytes(def), kBucket));
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
  int64_t started = 0; ///< bytes
};

struct ScheduleCollectives : nd::impl::ScheduleCollectivesBase<ScheduleCollectives> {
  using ScheduleCollectivesBase::ScheduleCollectivesBase;

  void runOnOperation() override {
    if (prefetchUnits < 0) {
      getOperation().emitError() << "nd-schedule-collectives: prefetch-units=" << prefetchUnits.getValue()
                                 << ", but a gather starts at least 1 unit ahead";
      return signalPassFailure();
    }
    int64_t prefetch = prefetchUnits;
    if (prefetch == 0)
      prefetch = names::moduleInt(getOperation(), names::kPlan, "prefetch_units").value_or(1);
    // One unit needs no estimate: a gather never starts later than that.
    std::unique_ptr<Estimate> estimate;
    if (prefetch > 1 && failed(readSystem(estimate)))
      return signalPassFailure();
    if (getOperation()->hasAttr(names::kPlan))
      names::setModuleEntry(getOperation(), names::kPlan, "prefetch_units",
                            Builder(&getContext()).getI64IntegerAttr(prefetch));
    SmallVector<Block *> blocks;
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      for (Block &block : function.getBody())
        blocks.push_back(&block);
      function.walk([&](RepeatOp loop) { blocks.push_back(&loop.getBody().front()); });
    }
    for (Block *block : blocks) {
      GatherScheduler(*block, prefetch, estimate.get()).run();
      ReaderScheduler(*block, prefetch).run();
      placeRingHops(*block);
    }
  }

  LogicalResult readSystem(std::unique_ptr<Estimate> &estimate) {
    llvm::Expected<System> system = System::find(systemName);
    if (!system)
      return getOperation().emitError() << llvm::toString(system.takeError());
    auto meshes = getOperation().getOps<MeshOp>();
    llvm::Expected<NodeLayout> layout = placeMesh(meshes.empty() ? MeshOp() : *meshes.begin(), *system);
    if (!layout)
      return getOperation().emitError() << llvm::toString(layout.takeError());
    estimate = std::make_unique<Estimate>(std::move(*system), std::move(*layout));
    return success();
  }
};

} // namespace
