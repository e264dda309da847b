//===- ScheduleForMemory.cpp - Orders a step to free memory early ----------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "nd/Dialect/ND/IR/Builders.h"
#include "nd/Dialect/ND/IR/Names.h"
#include "nd/Dialect/ND/IR/Signature.h"
#include "nd/Memory/Passes.h"

#include <set>

using namespace mlir;
using namespace nd;

namespace nd {
#define GEN_PASS_DEF_NDSCHEDULEFORMEMORY
#include "nd/Memory/Passes.h.inc"
} // namespace nd

namespace {

bool isView(Operation *op) { return isa_and_nonnull<ReshapeOp, TransposeOp, SliceOp>(op); }

bool isCollective(Operation *op) {
  return isa_and_nonnull<AllGatherOp, AllReduceOp, ReduceScatterOp, AllToAllOp, PermuteOp>(op);
}

Value rootOf(Value value) {
  while (isView(value.getDefiningOp()))
    value = value.getDefiningOp()->getOperand(0);
  return value;
}

int64_t bytesOf(Value value) {
  RankedTensorType type = tensorTypeOf(value);
  return type.getNumElements() * rt::getElementBytes(type.getElementType());
}

/// List scheduling in program order. Views cost nothing and go with their operand.
class Scheduler {
public:
  Scheduler(Block &block, bool mayDelay) : block(block) {
    for (Operation &op : block.without_terminator()) {
      index[&op] = operations.size();
      operations.push_back(&op);
    }
    missing.assign(operations.size(), 0);
    successors.resize(operations.size());
    done.assign(operations.size(), false);
    for (auto [position, op] : llvm::enumerate(operations))
      for (Value operand : op->getOperands())
        if (Operation *def = operand.getDefiningOp())
          addEdge(index.lookup(def), position);
    for (auto [position, op] : llvm::enumerate(operations))
      for (Value operand : op->getOperands())
        if (!isView(op))
          readers[rootOf(operand)].insert(position);
    for (Value operand : block.getTerminator()->getOperands())
      readers[rootOf(operand)].insert(operations.size());
    findUpdates();
    lazy.assign(operations.size(), false);
    if (mayDelay)
      findLazy();
  }

  void run() {
    for (int64_t position = 0, count = operations.size(); position < count; ++position) {
      current = position;
      if (lazy[position] || done[position])
        continue;
      demand(position);
      if (!done[position] && missing[position] == 0)
        emit(position);
    }
    // What an impossible wish still holds back: its order is that of the program.
    for (auto [position, op] : llvm::enumerate(operations))
      if (!done[position])
        op->moveBefore(block.getTerminator());
  }

  /// The largest sum of bytes of values that are live at one time, in the present order. A result of the size of an
  /// operand that dies there is taken to replace it.
  int64_t peak() const {
    llvm::DenseMap<Operation *, int64_t> time;
    for (Operation &op : block)
      time[&op] = time.size();
    llvm::MapVector<Value, int64_t> lastReads;
    for (Operation &op : block) {
      for (Value result : op.getResults())
        if (!isView(&op) && !inPlace.contains(result))
          lastReads[result] = time[&op];
      if (isView(&op))
        continue;
      for (Value operand : op.getOperands())
        if (auto *it = lastReads.find(rootOf(operand)); it != lastReads.end())
          it->second = time[&op];
    }
    SmallVector<Operation *> order;
    for (Operation &op : block)
      order.push_back(&op);
    std::vector<int64_t> change(order.size() + 2, 0);
    for (auto [value, last] : lastReads) {
      int64_t bytes = bytesOf(value);
      bool replaced = last > time[value.getDefiningOp()] &&
                      llvm::any_of(order[last]->getResults(), [&](Value result) { return bytesOf(result) == bytes; });
      change[time[value.getDefiningOp()]] += bytes;
      change[replaced ? last : last + 1] -= bytes;
    }
    int64_t live = 0, most = 0;
    for (int64_t delta : change)
      most = std::max(most, live += delta);
    return most;
  }

private:
  void addEdge(int64_t before, int64_t after) {
    if (before == after || !edges.insert({before, after}).second)
      return;
    successors[before].push_back(after);
    ++missing[after];
  }

  /// For each operand of the terminator the argument of the block whose new value it is (a state of the step, or what a
  /// loop carries), or null.
  SmallVector<Value> argumentsUpdated() {
    if (auto loop = dyn_cast<RepeatOp>(block.getParentOp()))
      return llvm::to_vector_of<Value>(loop.getCarriedArguments());
    auto function = cast<func::FuncOp>(block.getParentOp());
    SignatureIndex signature(function);
    SmallVector<Value> updated;
    for (unsigned result : llvm::seq(block.getTerminator()->getNumOperands())) {
      StringRef kind = names::resultKind(function, result), name = names::resultName(function, result);
      std::optional<unsigned> argument;
      if (!kind.empty() && !name.empty())
        argument = signature.findArg(kind, name);
      updated.push_back(argument ? function.getArgument(*argument) : Value());
    }
    return updated;
  }

  /// Orders replacements of a state behind the readers of its old value, unless a reader needs the new one.
  void findUpdates() {
    for (auto [value, argument] : llvm::zip_equal(block.getTerminator()->getOperands(), argumentsUpdated())) {
      Operation *def = rootOf(value).getDefiningOp();
      if (!def || !argument)
        continue;
      int64_t update = index.lookup(def);
      inPlace.insert(rootOf(value));
      std::set<int64_t> &old = readers[argument];
      if (llvm::none_of(old, [&](int64_t reader) { return reader != update && dependsOn(reader, update); }))
        for (int64_t reader : old)
          if (reader < static_cast<int64_t>(operations.size()))
            addEdge(reader, update);
    }
  }

  /// Whether operation `later` needs a result of `earlier`; what comes before it in the block does not.
  bool dependsOn(int64_t later, int64_t earlier) const {
    if (later <= earlier)
      return false;
    std::set<int64_t> worklist{later};
    while (!worklist.empty()) {
      int64_t position = *worklist.rbegin();
      worklist.erase(position);
      if (position == earlier)
        return true;
      if (position < earlier || position == static_cast<int64_t>(operations.size()))
        continue;
      for (Value operand : operations[position]->getOperands())
        if (Operation *def = operand.getDefiningOp())
          worklist.insert(index.lookup(def));
    }
    return false;
  }

  /// Marks operations whose large result is not read before long, and whose operands take far less to keep: the
  /// gradient of a tied embedding from the head, which waits for that of the lookup. They run right before the first
  /// reader.
  void findLazy() {
    constexpr int64_t large = 16 << 20, distance = 16;
    for (auto [position, op] : llvm::enumerate(operations)) {
      int64_t bytes = 0;
      for (Value result : op->getResults())
        bytes += bytesOf(result);
      if (isView(op) || isCollective(op) || bytes < large || readsGathered(op) ||
          llvm::any_of(op->getResults(), [&](Value v) { return inPlace.contains(v); }))
        continue;
      int64_t wanted = operations.size();
      for (Value result : op->getResults())
        for (int64_t reader : readers[result])
          wanted = std::min(wanted, earliest(reader, position));
      int64_t held = 0;
      llvm::SmallDenseSet<Value> roots;
      for (Value operand : op->getOperands()) {
        Value root = rootOf(operand);
        bool isRead = llvm::any_of(readers[root], [&](int64_t reader) { return reader >= wanted; });
        if (root.getDefiningOp() && !isRead && roots.insert(root).second)
          held += bytesOf(root);
      }
      lazy[position] = wanted > static_cast<int64_t>(position) + distance && 2 * held <= bytes;
    }
  }

  /// Gathered parameters are given back as nd-schedule-collectives has planned.
  static bool readsGathered(Operation *op) {
    return llvm::any_of(op->getOperands(), [](Value operand) {
      Operation *source = rootOf(operand).getDefiningOp();
      return source && source->hasAttr(names::kUnit);
    });
  }

  /// When an operation could run at the earliest, by the order of the program, once `given` has.
  int64_t earliest(int64_t position, int64_t given) const {
    if (position >= static_cast<int64_t>(operations.size()))
      return position;
    int64_t ready = given;
    for (Value operand : operations[position]->getOperands())
      if (Operation *def = rootOf(operand).getDefiningOp())
        ready = std::max(ready, index.lookup(def));
    return ready;
  }

  /// Runs the lazy operations that `position` reads.
  void demand(int64_t position) {
    for (Value operand : operations[position]->getOperands()) {
      Operation *def = operand.getDefiningOp();
      if (!def)
        continue;
      int64_t source = index.lookup(def);
      if (done[source] || (!lazy[source] && !isView(def)))
        continue;
      demand(source);
      if (!done[source] && missing[source] == 0)
        emit(source);
    }
  }

  void emit(int64_t position) {
    SmallVector<int64_t> worklist{position};
    while (!worklist.empty()) {
      int64_t next = worklist.pop_back_val();
      Operation *op = operations[next];
      op->moveBefore(block.getTerminator());
      done[next] = true;
      SmallVector<int64_t> ready;
      for (int64_t successor : successors[next])
        if (--missing[successor] == 0)
          ready.push_back(successor);
      if (!isView(op))
        for (Value operand : op->getOperands())
          readers[rootOf(operand)].erase(next);
      // Operations that the loop has passed while they were held back, and eager ones, in program order.
      llvm::sort(ready, std::greater<>());
      for (int64_t successor : ready)
        if (!lazy[successor] && (successor < current || isView(operations[successor]) || isEager(successor)))
          worklist.push_back(successor);
    }
  }

  /// Whether running now what is ready takes no more memory than it frees, or next to nothing.
  bool isEager(int64_t position) {
    Operation *op = operations[position];
    if (op->getNumResults() == 0 || isa<arith::ConstantOp>(op))
      return false;
    // nd-schedule-collectives has put computation between a collective and its readers.
    if (isCollective(op) ||
        llvm::any_of(op->getOperands(), [](Value operand) { return isCollective(rootOf(operand).getDefiningOp()); }))
      return false;
    int64_t needed = 0, freed = 0, read = 0;
    for (Value result : op->getResults())
      if (!inPlace.contains(result))
        needed += bytesOf(result);
    llvm::SmallDenseSet<Value> roots;
    for (Value operand : op->getOperands()) {
      Value root = rootOf(operand);
      if (!root.getDefiningOp() || !roots.insert(root).second)
        continue;
      read += bytesOf(root);
      if (readers[root] == std::set<int64_t>{position})
        freed += bytesOf(root);
    }
    constexpr int64_t small = 4096, ratio = 16;
    return needed <= freed || (needed <= small && needed * ratio <= read);
  }

  Block &block;
  SmallVector<Operation *> operations;
  llvm::DenseMap<Operation *, int64_t> index;
  SmallVector<int64_t> missing;
  SmallVector<SmallVector<int64_t>> successors;
  SmallVector<bool> done, lazy;
  llvm::DenseSet<std::pair<int64_t, int64_t>> edges;
  llvm::DenseMap<Value, std::set<int64_t>> readers;
  /// Results that are the new contents of a state.
  llvm::DenseSet<Value> inPlace;
  int64_t current = 0;
};

struct ScheduleForMemory : nd::impl::NDScheduleForMemoryBase<ScheduleForMemory> {
  void runOnOperation() override {
    func::FuncOp function = getOperation();
    if (!llvm::hasSingleElement(function.getBody()))
      return;
    function.walk([](RepeatOp loop) { schedule(loop.getBody().front()); });
    schedule(function.getBody().front());
  }

  static void schedule(Block &block) {
    // Delaying keeps operands: where all gradients are live at the end anyway it only costs.
    Scheduler prompt(block, /*mayDelay=*/false);
    prompt.run();
    int64_t promptPeak = prompt.peak();
    SmallVector<Operation *> order;
    for (Operation &op : block)
      order.push_back(&op);
    Scheduler delaying(block, /*mayDelay=*/true);
    delaying.run();
    if (delaying.peak() >= promptPeak)
      for (Operation *op : order)
        op->moveBefore(&block, block.end());
  }
};

} // namespace
