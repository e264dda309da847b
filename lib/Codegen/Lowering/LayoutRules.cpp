//===- LayoutRules.cpp - Which layouts operations read and write -----------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "BufferAssignment.h"
#include "nd/Dialect/ND/IR/Builders.h"

using namespace mlir;
using namespace nd;

/// Row-major without gaps, wherever it starts.
static bool isContiguousAt(ArrayRef<int64_t> shape, rt::Layout layout) {
  layout.offset = 0;
  return layout == contiguousLayout(shape);
}

bool nd::isGemmOperand(ArrayRef<int64_t> shape, const rt::Layout &layout) {
  size_t rank = shape.size();
  return shape[rank - 1] == 1 || layout.strides[rank - 1] == 1 || shape[rank - 2] == 1 || layout.strides[rank - 2] == 1;
}

bool nd::canWrite(Value value, const rt::Layout &layout) {
  ArrayRef<int64_t> shape = tensorTypeOf(value).getShape();
  Operation *op = value.getDefiningOp();
  bool contiguous = isContiguousAt(shape, layout);
  if (isa<AttentionOp>(op) && value != op->getResult(0))
    return contiguous; // the log-sum-exp
  if (isa<KernelOp, GemmOp, AttentionOp, AttentionGradOp>(op))
    return hasContiguousRows(shape, layout);
  if (isa<ConcatOp>(op))
    return true;
  return contiguous;
}

double nd::costOfLayout(Value value, const rt::Layout &layout) {
  constexpr double copy = 1, slowAccess = 0.25;
  ArrayRef<int64_t> shape = tensorTypeOf(value).getShape();
  double cost = 0;
  for (OpOperand &use : value.getUses()) {
    Operation *user = use.getOwner();
    if (isViewOp(user)) {
      std::optional<rt::Layout> view = viewLayout(user, layout);
      cost += view ? costOfLayout(user->getResult(0), *view) : copy;
    } else if (auto gemm = dyn_cast<GemmOp>(user)) {
      bool isMatrix = use.get() == gemm.getLhs() || use.get() == gemm.getRhs();
      cost += (isMatrix ? isGemmOperand(shape, layout) : hasContiguousRows(shape, layout)) ? 0 : copy;
    } else if (isa<AttentionOp, AttentionGradOp>(user)) {
      cost += hasContiguousRows(shape, layout) ? 0 : copy;
    } else if (isa<KernelOp>(user)) {
      cost += hasContiguousRows(shape, layout) ? 0 : slowAccess;
    } else if (auto loop = dyn_cast<RepeatOp>(user)) {
      // What a loop captures, its body reads; carried values are moved to their place in any case.
      if (use.getOperandNumber() < loop.getSliced().size())
        cost += isContiguousAt(shape, layout) ? 0 : copy;
    } else if (!isa<ConcatOp, YieldOp>(user)) {
      cost += isContiguousAt(shape, layout) ? 0 : copy;
    }
  }
  return cost;
}
