//===- MicrobatchLoop.cpp - What a step does per microbatch ---------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "nd/Dialect/ND/IR/MicrobatchLoop.h"
#include "nd/Dialect/ND/IR/Builders.h"
#include "nd/Dialect/ND/IR/Names.h"
#include "llvm/ADT/DenseSet.h"

using namespace mlir;
using namespace nd;

FailureOr<MicrobatchLoop> MicrobatchLoop::get(Block &block) {
  MicrobatchLoop loop;
  if (failed(loop.findBorders(block)))
    return failure();
  if (loop.hasBorders && failed(loop.divide(block)))
    return failure();
  return loop;
}

LogicalResult MicrobatchLoop::findBorders(Block &block) {
  for (Operation &op : block) {
    int64_t turns = 0;
    if (auto microbatch = dyn_cast<MicrobatchOp>(op))
      turns = microbatch.getInput().getType().getDimSize(0);
    else if (auto accumulate = dyn_cast<AccumulateOp>(op))
      turns = accumulate.getCount();
    else
      continue;
    if (hasBorders && turns != count)
      return op.emitOpError() << "is of " << turns << " microbatches, but the step has " << count;
    hasBorders = true;
    count = turns;
  }
  return success();
}

LogicalResult MicrobatchLoop::divide(Block &block) {
  llvm::DenseSet<Operation *> varies, behind, ofUnits;
  for (Operation &op : block) {
    bool readsVarying = false, readsSums = false, readsUnit = op.hasAttr(names::kUnit);
    for (Value operand : op.getOperands()) {
      Operation *def = operand.getDefiningOp();
      readsUnit |= ofUnits.contains(def);
      readsSums |= isa_and_nonnull<AccumulateOp>(def) || behind.contains(def);
      readsVarying |= !isa_and_nonnull<AccumulateOp>(def) && varies.contains(def);
    }
    bool isBorder = isa<MicrobatchOp, AccumulateOp>(op);
    if (readsSums && (readsVarying || isBorder))
      return op.emitOpError() << "needs the sum over all microbatches, which exists only behind them, while they run";
    if (readsVarying && isa<MicrobatchOp>(op))
      return op.emitOpError() << "takes a microbatch of what belongs to one microbatch already";
    if (readsVarying && op.hasTrait<OpTrait::IsTerminator>())
      return op.emitOpError() << "returns a value of one microbatch; only sums (nd.accumulate) leave the loop";
    if (readsVarying || isBorder)
      varies.insert(&op);
    if (readsSums)
      behind.insert(&op);
    if (readsUnit)
      ofUnits.insert(&op);
  }
  // Backwards, the users of an operation are divided before it.
  for (Operation &op : llvm::reverse(block.without_terminator())) {
    if (varies.contains(&op)) {
      parts[&op] = Part::Inside;
      continue;
    }
    bool isNumber = !ofUnits.contains(&op) && llvm::all_of(op.getResultTypes(), [](Type type) {
      return cast<ShapedType>(type).getNumElements() == 1;
    });
    bool readInside = false, readElsewhere = false, isNeeded = false;
    for (Operation *user : op.getUsers()) {
      bool isInside = getPart(user) == Part::Inside && !isa<MicrobatchOp>(user);
      readInside |= isInside;
      readElsewhere |= !isInside;
      isNeeded |= !user->hasTrait<OpTrait::IsTerminator>() && getPart(user) != Part::Behind;
    }
    if (behind.contains(&op) || !isNeeded)
      parts[&op] = Part::Behind;
    else
      parts[&op] = readInside && !readElsewhere && !isNumber && !op.hasAttr(names::kOnce) ? Part::Inside : Part::Before;
  }
  return success();
}
