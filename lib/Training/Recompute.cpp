//===- Recompute.cpp - Recompute cheap forward values in backward ---------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The backward reads values of the forward. Each is either kept from forward to backward, or computed again from others
// that are. Only elementwise operations are computed again: their kernels are bound by memory, and they join the kernel
// that reads them. What is kept is a minimum cut, in bytes, of the graph from what cannot be computed again to what the
// backward reads; of equal cuts the one nearest to the backward, which computes least.
//
//===----------------------------------------------------------------------===//

#include "MinCut.h"
#include "StepFunction.h"
#include "mlir/IR/IRMapping.h"
#include "nd/Dialect/ND/IR/Builders.h"
#include "nd/Dialect/ND/IR/Names.h"
#include "nd/Training/Passes.h"
#include "llvm/ADT/SetVector.h"

namespace nd {
#define GEN_PASS_DEF_RECOMPUTE
#include "nd/Training/Passes.h.inc"
} // namespace nd

using namespace mlir;
using namespace nd;

namespace {

bool isView(Operation *op) { return isa_and_nonnull<ReshapeOp, TransposeOp, SliceOp>(op); }

/// An operation that a kernel computes where its result is read, without calling a library for each element.
bool isCheap(Operation *op) {
  if (isa<math::SinOp, math::CosOp, math::TanOp, math::PowFOp, math::FPowIOp, math::Atan2Op>(op))
    return false;
  return op->getNumResults() == 1 && op->getNumRegions() == 0 &&
         (op->hasTrait<OpTrait::Elementwise>() || isa<BroadcastOp, IotaOp>(op));
}

int64_t bytesOf(Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  // One byte per boolean.
  return type.getNumElements() * llvm::divideCeil(type.getElementType().getIntOrFloatBitWidth(), 8);
}

class Recomputation {
public:
  Recomputation(Block &block, Value loss) : block(block) { collectForward(loss); }

  void run() {
    collectReads();
    findKept();
    replaceReads();
  }

private:
  /// The forward is everything that the loss is computed from.
  void collectForward(Value loss) {
    SmallVector<Value> worklist = {loss};
    while (!worklist.empty())
      if (Operation *op = worklist.pop_back_val().getDefiningOp(); op && forward.insert(op).second)
        llvm::append_range(worklist, op->getOperands());
  }

  bool isForward(Value value) const { return forward.contains(value.getDefiningOp()); }
  /// Available in backward for nothing, or for one number.
  bool isFree(Value value) const {
    Operation *op = value.getDefiningOp();
    return !op || op->hasTrait<OpTrait::ConstantLike>() || !isForward(value) ||
           tensorTypeOf(value).getNumElements() == 1;
  }

  /// Whether every reader of a backward value is part of a kernel, looking through views.
  static bool isReadByKernels(Operation *reader) {
    if (isView(reader))
      return llvm::all_of(reader->getUsers(), isReadByKernels);
    return isCheap(reader) || isa<ReduceOp>(reader);
  }

  /// Forward values that the backward reads, and those among them that must lie in memory.
  void collectReads() {
    for (Operation &op : block) {
      if (forward.contains(&op) || op.hasTrait<OpTrait::IsTerminator>())
        continue;
      for (Value operand : op.getOperands()) {
        if (isFree(operand))
          continue;
        reads.insert(operand);
        if (!isReadByKernels(&op))
          keep(operand);
      }
    }
    for (Value result : block.getTerminator()->getOperands())
      if (!isFree(result))
        keep(result);
  }

  /// A view is kept by keeping what it looks at.
  void keep(Value value) {
    kept.insert(value);
    if (isView(value.getDefiningOp()))
      keep(value.getDefiningOp()->getOperand(0));
  }

  /// Adds to `kept` the values of the minimum cut. Two nodes per value, before and after its memory: the edge between
  /// them is what keeping costs. Only values that reads depend on through cheap operations take part.
  void findKept() {
    MinCut network;
    MinCut::Node source = network.addNode(), sink = network.addNode();
    llvm::MapVector<Value, std::pair<MinCut::Node, MinCut::Node>> nodes;
    SmallVector<Value> worklist(reads.begin(), reads.end());
    auto nodesOf = [&](Value value) {
      auto [entry, isNew] = nodes.try_emplace(value);
      if (isNew) {
        entry->second = {network.addNode(), network.addNode()};
        worklist.push_back(value);
      }
      return entry->second;
    };
    for (Value read : reads)
      if (!kept.contains(read))
        network.addEdge(nodesOf(read).second, sink, MinCut::kInfinite);
    llvm::SmallPtrSet<void *, 32> visited;
    while (!worklist.empty()) {
      Value value = worklist.pop_back_val();
      if (kept.contains(value) || !visited.insert(value.getAsOpaquePointer()).second)
        continue;
      auto [before, after] = nodesOf(value);
      Operation *op = value.getDefiningOp();
      // Keeping a view is keeping its operand.
      network.addEdge(before, after, isView(op) ? MinCut::kInfinite : bytesOf(value));
      if (!isCheap(op) && !isView(op)) {
        network.addEdge(source, before, MinCut::kInfinite);
        continue;
      }
      for (Value operand : op->getOperands())
        if (!isFree(operand) && !kept.contains(operand))
          network.addEdge(nodesOf(operand).second, before, MinCut::kInfinite);
    }
    std::vector<bool> sinkSide = network.sinkSide(source, sink);
    for (auto &[value, pair] : nodes)
      if (sinkSide[pair.second] && !sinkSide[pair.first])
        kept.insert(value);
  }

  /// The value as backward sees it before `reader`: itself, or a copy of the operations that lead to it from kept
  /// values.
  Value available(Value value, Operation *reader) {
    if (isFree(value) || kept.contains(value))
      return value;
    if (Value copy = copies.lookup(value))
      return copy;
    Operation *op = value.getDefiningOp();
    // A view of something kept needs no copy.
    if (isView(op) && available(op->getOperand(0), reader) == op->getOperand(0))
      return copies[value] = value;
    IRMapping mapping;
    for (Value operand : op->getOperands())
      mapping.map(operand, available(operand, reader));
    OpBuilder builder(reader);
    Operation *clone = builder.clone(*op, mapping);
    // Keeps common subexpression elimination from undoing it.
    clone->setAttr(names::kRecomputed, builder.getUnitAttr());
    return copies[value] = clone->getResult(0);
  }

  void replaceReads() {
    SmallVector<Operation *> readers;
    for (Operation &op : block.without_terminator())
      if (!forward.contains(&op))
        readers.push_back(&op);
    for (Operation *reader : readers)
      for (OpOperand &operand : reader->getOpOperands())
        operand.set(available(operand.get(), reader));
  }

  Block &block;
  llvm::DenseSet<Operation *> forward;
  llvm::SetVector<Value> reads;
  llvm::DenseSet<Value> kept;
  llvm::DenseMap<Value, Value> copies;
};

struct Recompute : nd::impl::RecomputeBase<Recompute> {
  void runOnOperation() override {
    FailureOr<func::FuncOp> function = getForward(getOperation());
    if (failed(function))
      return signalPassFailure();
    std::optional<unsigned> loss = names::findResult(*function, names::kind::kMetric, names::name::kLoss);
    if (!loss) {
      function->emitOpError() << "must return the metric 'loss'; run nd-build-backward first";
      return signalPassFailure();
    }
    Recomputation(function->getBody().front(), getReturn(*function).getOperand(*loss)).run();
  }
};

} // namespace
