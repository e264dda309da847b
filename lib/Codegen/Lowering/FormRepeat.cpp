//===- FormRepeat.cpp - The loop over microbatches -------------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"
#include "nd/Codegen/Lowering/Passes.h"
#include "nd/Dialect/ND/IR/Builders.h"
#include "nd/Dialect/ND/IR/MicrobatchLoop.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace nd;

namespace nd {
#define GEN_PASS_DEF_FORMREPEAT
#include "nd/Codegen/Lowering/Passes.h.inc"
} // namespace nd

namespace {

using Part = MicrobatchLoop::Part;

/// Moves what runs per microbatch from a block into the region of an nd.repeat in front of the block's terminator.
class LoopBuilder {
public:
  LoopBuilder(Block &block, const MicrobatchLoop &loop) : block(block), loop(loop), builder(block.getTerminator()) {
    for (Operation &op : block.without_terminator())
      operations.push_back(&op);
  }

  void run() {
    collectOperands();
    SmallVector<Value> zeros;
    for (AccumulateOp sum : sums)
      zeros.push_back(splatLike(builder, sum.getLoc(), sum.getInput(), 0.0));
    auto repeat = RepeatOp::create(builder, block.getTerminator()->getLoc(), TypeRange(ValueRange(zeros)),
                                   loop.getCount(), sliced.getArrayRef(), zeros, captured.getArrayRef());
    fillRegion(repeat);
    for (Operation *op : operations)
      if (loop.getPart(op) != Part::Inside)
        op->moveBefore(loop.getPart(op) == Part::Before ? repeat.getOperation() : block.getTerminator());
    // What runs once reads the sums.
    for (auto [sum, result] : llvm::zip_equal(sums, repeat.getResults()))
      sum.getResult().replaceAllUsesWith(result);
    for (Operation *op : llvm::reverse(operations))
      if (isa<MicrobatchOp, AccumulateOp>(op))
        op->erase();
  }

private:
  bool isInside(Operation *op) const { return loop.getPart(op) == Part::Inside; }

  void collectOperands() {
    for (Operation *op : operations) {
      if (!isInside(op))
        continue;
      if (auto microbatch = dyn_cast<MicrobatchOp>(op)) {
        sliced.insert(microbatch.getInput());
        continue;
      }
      if (auto sum = dyn_cast<AccumulateOp>(op))
        sums.push_back(sum);
      for (Value operand : op->getOperands())
        if (Operation *def = operand.getDefiningOp();
            !def || (!isInside(def) && !def->hasTrait<OpTrait::ConstantLike>()))
          captured.insert(operand);
    }
  }

  void fillRegion(RepeatOp repeat) {
    Block &body = repeat.getBody().emplaceBlock();
    IRMapping mapping;
    auto addArguments = [&](ValueRange operands, bool rows) {
      for (Value operand : operands) {
        RankedTensorType type = tensorTypeOf(operand);
        Value argument =
            body.addArgument(rows ? withShape(type, type.getShape().drop_front()) : type, operand.getLoc());
        if (!rows)
          mapping.map(operand, argument);
      }
    };
    addArguments(sliced.getArrayRef(), /*rows=*/true);
    for (AccumulateOp sum : sums)
      body.addArgument(sum.getType(), sum.getLoc());
    addArguments(captured.getArrayRef(), /*rows=*/false);

    OpBuilder inner = OpBuilder::atBlockEnd(&body);
    SmallVector<Value> yielded;
    for (Operation *op : operations) {
      if (!isInside(op))
        continue;
      if (auto microbatch = dyn_cast<MicrobatchOp>(op)) {
        auto *position = llvm::find(sliced, microbatch.getInput());
        microbatch.getResult().replaceAllUsesWith(body.getArgument(position - sliced.begin()));
        continue;
      }
      for (OpOperand &operand : op->getOpOperands()) {
        Operation *def = operand.get().getDefiningOp();
        if (def && !mapping.contains(operand.get()) && !isInside(def) && def->hasTrait<OpTrait::ConstantLike>())
          mapping.map(operand.get(), inner.clone(*def)->getResult(0));
        operand.set(mapping.lookupOrDefault(operand.get()));
      }
      auto sum = dyn_cast<AccumulateOp>(op);
      if (!sum) {
        op->moveBefore(&body, body.end());
        continue;
      }
      Value soFar = body.getArgument(sliced.size() + yielded.size());
      yielded.push_back(add(inner, sum, soFar));
    }
    YieldOp::create(inner, repeat.getLoc(), yielded);
  }

  /// The sum so far and what this turn adds. A scatter on top of something else goes on top of both, so that what is
  /// below can be summed where it is computed.
  static Value add(OpBuilder &builder, AccumulateOp sum, Value soFar) {
    auto scatter = sum.getInput().getDefiningOp<ScatterAddOp>();
    if (!scatter || !scatter.getInit() || !scatter->hasOneUse())
      return arith::AddFOp::create(builder, sum.getLoc(), soFar, sum.getInput());
    OpBuilder before(scatter);
    scatter.getInitMutable().assign(arith::AddFOp::create(before, sum.getLoc(), soFar, scatter.getInit()));
    return scatter;
  }

  Block &block;
  const MicrobatchLoop &loop;
  OpBuilder builder;
  SmallVector<Operation *> operations;
  llvm::SetVector<Value> sliced, captured;
  SmallVector<AccumulateOp> sums;
};

struct FormRepeat : nd::impl::FormRepeatBase<FormRepeat> {
  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      if (!function.getBody().hasOneBlock())
        continue;
      Block &block = function.getBody().front();
      FailureOr<MicrobatchLoop> loop = MicrobatchLoop::get(block);
      if (failed(loop))
        return signalPassFailure();
      if (loop->exists())
        LoopBuilder(block, *loop).run();
    }
  }
};

} // namespace
