//===- PlanMemory.cpp - Gives every buffer its offset ----------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "nd/Memory/ArenaPlanner.h"
#include "nd/Memory/Passes.h"
#include "nd/Runtime/Core/ABI.h"

using namespace mlir;
using namespace nd;

namespace nd {
#define GEN_PASS_DEF_RTPLANMEMORY
#include "nd/Memory/Passes.h.inc"
} // namespace nd

namespace {

/// What a program's buffers need: those at fixed offsets in order, and the lifetimes of those that share.
class MemoryPlan {
public:
  explicit MemoryPlan(rt::ProgramOp program) : program(program) {}

  void run() {
    int64_t fixed = placeFixed();
    computeLifetimes();
    SmallVector<Lifetime> lifetimes;
    for (const auto &entry : shared)
      lifetimes.push_back(entry.second);
    ArenaPlan plan = planArena(lifetimes, ND_ALIGNMENT);
    for (auto [entry, offset] : llvm::zip_equal(shared, plan.offsets))
      setOffset(entry.first, fixed + offset);
    Builder builder(program.getContext());
    program.setArenaBytesAttr(builder.getI64IntegerAttr(fixed + plan.bytes));
    program.setPeakLiveBytesAttr(builder.getI64IntegerAttr(fixedExact + plan.peakBytes));
    program.setFixedBytesAttr(builder.getI64IntegerAttr(fixed));
  }

private:
  static void setOffset(Operation *root, int64_t offset) {
    IntegerAttr attribute = Builder(root->getContext()).getI64IntegerAttr(offset);
    if (auto tensor = dyn_cast<rt::TensorOp>(root))
      tensor.setOffsetAttr(attribute);
    else
      cast<rt::BufferOp>(root).setOffsetAttr(attribute);
  }

  /// Scalars, then metrics, then everything that lasts from step to step.
  int64_t placeFixed() {
    auto rankOf = [](rt::TensorOp tensor) {
      if (tensor.getKind() == "scalar")
        return 0;
      if (tensor.getKind() == "metric")
        return 1;
      return tensor.getOutput() ? 3 : 2;
    };
    int64_t offset = 0;
    for (int rank = 0; rank < 3; ++rank)
      for (auto tensor : program.getBody().getOps<rt::TensorOp>()) {
        if (rankOf(tensor) != rank)
          continue;
        setOffset(tensor, offset);
        int64_t bytes = rt::getBytes(tensor.getBuffer().getType());
        fixedExact += bytes;
        offset += llvm::alignTo(bytes, ND_ALIGNMENT);
      }
    return offset;
  }

  void computeLifetimes() {
    auto isFixed = [](Operation *root) {
      auto tensor = dyn_cast<rt::TensorOp>(root);
      return tensor && (!tensor.getOutput() || tensor.getKind() == "metric");
    };
    int64_t time = 0;
    for (Operation &op : program.getBody().front()) {
      ++time;
      if (isa<rt::ViewOp>(op))
        continue;
      auto touch = [&](Value buffer) {
        Operation *root = rt::getRoot(buffer).getDefiningOp();
        if (isa<rt::ConstantOp>(root) || isFixed(root))
          return;
        auto [it, isNew] = shared.insert({root, Lifetime{0, time, time}});
        it->second.last = time;
        if (isNew)
          it->second.bytes = rt::getBytes(cast<MemRefType>(root->getResult(0).getType()));
      };
      for (Value operand : op.getOperands()) {
        if (auto start = operand.getDefiningOp<rt::CollectiveStartOp>()) {
          touch(start.getSource());
          touch(start.getTarget());
        } else {
          touch(operand);
        }
      }
    }
    // Outputs are read after the step, even those that nothing writes.
    for (auto tensor : program.getBody().getOps<rt::TensorOp>()) {
      if (isFixed(tensor))
        continue;
      auto it = shared.insert({tensor, Lifetime{rt::getBytes(tensor.getBuffer().getType()), 0, 0}}).first;
      it->second.last = time + 1;
    }
  }

  rt::ProgramOp program;
  int64_t fixedExact = 0;
  llvm::MapVector<Operation *, Lifetime> shared;
};

struct PlanMemory : nd::impl::RTPlanMemoryBase<PlanMemory> {
  void runOnOperation() override { MemoryPlan(getOperation()).run(); }
};

} // namespace
