//===- ExpandRingAttention.cpp - Keys that go around the ranks ------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Forward: a rank starts with its own keys and values and merges what it gets from the rank before it, step by step.
//
// Backward: the gradients of a shard's keys travel with the shard, and have to end at its owner. A rank therefore
// starts with the keys of the rank before it and ends with its own, which it need not get again: the gradients of shard
// s start at rank s + 1, gain a contribution at each rank, and arrive at rank s with the last hop. Both go c - 1 hops.
//
// A step that no rank needs (RingSchedule.h) is left out, and the hop before it goes further. The hop for the next step
// stands before the attention of this one, so that it can be hidden behind it.
//
//===----------------------------------------------------------------------===//

#include "MeshView.h"
#include "Partition/RingSchedule.h"
#include "Program.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "nd/Dialect/ND/IR/Builders.h"
#include "nd/Sharding/Passes.h"
#include "llvm/ADT/TypeSwitch.h"

namespace nd {
#define GEN_PASS_DEF_EXPANDRINGATTENTION
#include "nd/Sharding/Passes.h.inc"
} // namespace nd

using namespace mlir;
using namespace nd;

namespace {

/// Expands the attentions of one program.
class RingExpander {
public:
  explicit RingExpander(Program &program) : program(program) {}

  /// Whether there was one; fails with an error where one cannot be expanded.
  FailureOr<bool> run() {
    SmallVector<Operation *> rings;
    program.function.walk([&](Operation *op) {
      if (auto instance = op->getAttrOfType<IntegerAttr>("instance"))
        nextInstance = std::max(nextInstance, instance.getInt() + 1);
      auto isRing = [](auto attention) { return attention && attention.isRing(); };
      if (isRing(dyn_cast<AttentionOp>(op)) || isRing(dyn_cast<AttentionGradOp>(op)))
        rings.push_back(op);
    });
    for (Operation *op : rings) {
      bool expanded = llvm::TypeSwitch<Operation *, bool>(op).Case<AttentionOp, AttentionGradOp>([&](auto attention) {
        if (failed(verifyShards(attention)))
          return false;
        expand(attention);
        return true;
      });
      if (!expanded)
        return failure();
    }
    return !rings.empty();
  }

private:
  struct KeysAndValues {
    Value key, value;
  };

  template <typename AttentionLike> LogicalResult verifyShards(AttentionLike op) {
    int64_t ranks = 1;
    ArrayAttr axes = op.getSeqAxes() ? *op.getSeqAxes() : ArrayAttr::get(op.getContext(), {});
    for (auto axis : axes.getAsRange<StringAttr>()) {
      MeshAxisAttr found = program.mesh.findAxis(axis);
      if (!found)
        return op.emitOpError() << "has keys that go around mesh axis " << axis << ", which the mesh lacks";
      ranks *= found.getSize();
    }
    if (ranks == static_cast<int64_t>(op.getKeyShards()))
      return success();
    return op.emitOpError() << "has keys that go around the " << ranks << " ranks of its seq_axes, but key_shards is "
                            << static_cast<int64_t>(op.getKeyShards());
  }

  void expand(AttentionOp op) {
    SmallVector<int64_t> steps = neededRingSteps(op);
    KeysAndValues current{op.getKey(), op.getValue()}, next;
    AttentionOp last;
    for (auto [index, step] : llvm::enumerate(steps)) {
      OpBuilder builder(op);
      bool isLast = index + 1 == steps.size();
      if (!isLast)
        next = move(builder, op, current, steps[index + 1] - step);
      auto part = cast<AttentionOp>(builder.clone(*op));
      part.removeCpModeAttr();
      part.setRingStep(step);
      part.getKeyMutable().assign(current.key);
      part.getValueMutable().assign(current.value);
      if (!isLast)
        part.getResult().setType(part.getResult().getType().clone(builder.getF32Type()));
      if (last) {
        part.getCarryResultMutable().assign(last.getResult());
        part.getCarryLseMutable().assign(last.getLse());
      }
      last = part;
      current = next;
    }
    op->replaceAllUsesWith(last->getResults());
    op->erase();
  }

  void expand(AttentionGradOp op) {
    SmallVector<int64_t> steps = neededRingSteps(op);
    int64_t shards = op.getKeyShards();
    // A rank's own keys come last, as step c.
    std::rotate(steps.begin(), steps.begin() + 1, steps.end());
    steps.back() = shards;
    KeysAndValues own{op.getKey(), op.getValue()}, current = own, next, grads;
    if (steps.size() > 1) {
      OpBuilder builder(op);
      current = move(builder, op, own, steps.front());
    }
    Value queryGrad;
    for (auto [index, step] : llvm::enumerate(steps)) {
      OpBuilder builder(op);
      bool isLast = index + 1 == steps.size();
      if (!isLast)
        next = steps[index + 1] == shards ? own : move(builder, op, current, steps[index + 1] - step);
      auto part = cast<AttentionGradOp>(builder.clone(*op));
      part.removeCpModeAttr();
      part.setRingStep(step % shards);
      part.getKeyMutable().assign(current.key);
      part.getValueMutable().assign(current.value);
      part.getQueryGrad().setType(part.getQueryGrad().getType().clone(builder.getF32Type()));
      queryGrad = sum(builder, op, queryGrad, part.getQueryGrad());
      grads = {sum(builder, op, grads.key, part.getKeyGrad()), sum(builder, op, grads.value, part.getValueGrad())};
      if (!isLast)
        grads = move(builder, op, grads, steps[index + 1] - step, "gradients of ");
      current = next;
    }
    OpBuilder builder(op);
    queryGrad = convertFloat(builder, op.getLoc(), queryGrad, op.getQueryGrad().getType().getElementType());
    op->replaceAllUsesWith(ValueRange{queryGrad, grads.key, grads.value});
    op->erase();
  }

  static Value sum(OpBuilder &builder, Operation *op, Value before, Value part) {
    return before ? arith::AddFOp::create(builder, op->getLoc(), before, part) : part;
  }

  /// Each rank gets them from the rank that is `distance` before it.
  template <typename AttentionLike>
  KeysAndValues move(OpBuilder &builder, AttentionLike op, KeysAndValues from, int64_t distance, StringRef what = "") {
    int64_t shards = op.getKeyShards();
    SmallVector<int64_t> sources;
    for (int64_t rank : llvm::seq(shards))
      sources.push_back((rank - distance % shards + shards) % shards);
    auto hop = [&](Value value, StringRef name) -> Value {
      return PermuteOp::create(builder, op.getLoc(), value.getType(), value, program.mesh.getSymName(),
                               *op.getSeqAxes(), nextInstance++,
                               "the keys of '" + op->getName().getStringRef().str() + "' go around a ring", sources,
                               (what + name).str(), ShardingAttr(), ShardingAttr())
          .getResult();
    };
    Value key = hop(from.key, "keys");
    return {key, hop(from.value, "values")};
  }

  Program &program;
  int64_t nextInstance = 1;
};

struct ExpandRingAttention : nd::impl::ExpandRingAttentionBase<ExpandRingAttention> {
  void runOnOperation() override {
    FailureOr<Program> program = Program::getWithMesh(getOperation());
    if (failed(program))
      return signalPassFailure();
    FailureOr<bool> changed = RingExpander(*program).run();
    if (failed(changed))
      signalPassFailure();
    else if (!*changed)
      markAllAnalysesPreserved();
  }
};

} // namespace
