//===- LoopOps.cpp - Microbatches and loops: verifiers --------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Verify.h"
#include "nd/Dialect/ND/IR/ND.h"

using namespace mlir;
using namespace nd;

#define GET_OP_CLASSES
#include "nd/Dialect/ND/IR/NDLoopOps.cpp.inc"

LogicalResult MicrobatchOp::verify() {
  RankedTensorType input = getInput().getType();
  if (input.getRank() == 0 || input.getDimSize(0) == 0)
    return emitOpError() << "expected an operand with one row per microbatch but found " << input;
  return verify::shape(*this, "result", getResult().getType(), input.getShape().drop_front());
}

Block::BlockArgListType RepeatOp::getSlices() { return getBody().getArguments().take_front(getSliced().size()); }

Block::BlockArgListType RepeatOp::getCarriedArguments() {
  return getBody().getArguments().slice(getSliced().size(), getCarried().size());
}

Block::BlockArgListType RepeatOp::getCapturedArguments() {
  return getBody().getArguments().take_back(getCaptured().size());
}

YieldOp RepeatOp::getYield() { return cast<YieldOp>(getBody().front().back()); }

LogicalResult RepeatOp::verify() {
  Block &block = getBody().front();
  if (block.getNumArguments() != getNumOperands())
    return emitOpError() << "expected one argument of the region per operand, " << getNumOperands() << ", but found "
                         << block.getNumArguments();
  int64_t count = getCount();
  for (auto [index, operand, argument] : llvm::enumerate(getSliced(), getSlices())) {
    auto type = cast<RankedTensorType>(operand.getType());
    if (type.getRank() == 0 || type.getDimSize(0) != count)
      return emitOpError() << "expected sliced operand " << index << " to have " << count << " rows but found " << type;
    auto slice = dyn_cast<RankedTensorType>(argument.getType());
    if (!slice || slice.getShape() != type.getShape().drop_front() || slice.getElementType() != type.getElementType())
      return emitOpError() << "expected argument " << index << " of the region to be a row of " << type << " but found "
                           << argument.getType();
  }
  for (unsigned index = getSliced().size(); index < getNumOperands(); ++index)
    if (block.getArgument(index).getType() != getOperand(index).getType())
      return emitOpError() << "expected argument " << index << " of the region to be of its operand's type, "
                           << getOperand(index).getType() << ", but found " << block.getArgument(index).getType();
  auto yield = block.empty() ? YieldOp() : dyn_cast<YieldOp>(block.back());
  if (!yield)
    return emitOpError() << "expected the region to end in nd.yield";
  if (yield.getNumOperands() != getNumResults())
    return emitOpError() << "expected one yielded value per carried operand, " << getNumResults() << ", but found "
                         << yield.getNumOperands();
  for (auto [index, value, result] : llvm::enumerate(yield.getOperands(), getResults()))
    if (value.getType() != result.getType())
      return emitOpError() << "expected yielded value " << index << " to be of type " << result.getType()
                           << " but found " << value.getType();
  return success();
}
