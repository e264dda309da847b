//===- AdditionPatterns.cpp - Sums of padded and scattered tensors --------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The gradient of a value that is read through slices is a sum of zero-padded tensors, one per slice. Where the parts
// do not overlap, each element of the sum is one element of one part plus zeros, so the sum is a concatenation: the
// gradient of a fused projection is then written once instead of read and added part by part.
//
//===----------------------------------------------------------------------===//

#include "Patterns.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace nd;

namespace {

/// A zero-padded tensor, and the elements of `dim` that it fills; the other dimensions are whole.
struct Part {
  Value tensor;
  int64_t start, end;
};

/// The only padded dimension; nothing when `value` is no padding with zeros of one dimension.
std::optional<int64_t> paddedDim(PadOp pad) {
  if (!pad || !isZeroSplat(pad.getValue()))
    return std::nullopt;
  std::optional<int64_t> padded;
  for (int64_t dim : llvm::seq(pad.getType().getRank())) {
    if (pad.getInterior()[dim] > 0)
      return std::nullopt;
    if (pad.getLow()[dim] == 0 && pad.getHigh()[dim] == 0)
      continue;
    if (padded)
      return std::nullopt;
    padded = dim;
  }
  return padded;
}

/// The terms of a sum: zero-padded tensors along one dimension, and at most one other. With two others their order of
/// addition would matter, so such a sum is none.
struct PaddedSum {
  std::optional<int64_t> dim;
  SmallVector<Part> parts;
  Value other;

  /// Adds the terms of a sum, through additions that nothing else reads. Terms come before the additions below them, so
  /// that a sum of other things is given up after two terms, however long it is.
  bool collect(arith::AddFOp root) {
    SmallVector<arith::AddFOp> additions = {root};
    while (!additions.empty()) {
      arith::AddFOp addition = additions.pop_back_val();
      for (Value operand : addition->getOperands()) {
        auto inner = operand.getDefiningOp<arith::AddFOp>();
        if (inner && operand.hasOneUse())
          additions.push_back(inner);
        else if (!addTerm(operand))
          return false;
      }
    }
    return true;
  }

  bool addTerm(Value value) {
    auto pad = plainProducer<PadOp>(value);
    std::optional<int64_t> padded = paddedDim(pad);
    if (padded && (!dim || *dim == *padded)) {
      dim = padded;
      int64_t start = pad.getLow()[*dim];
      parts.push_back({pad.getInput(), start, start + pad.getInput().getType().getDimSize(*dim)});
      return true;
    }
    if (other)
      return false;
    other = value;
    return true;
  }

  /// Sorts the parts; false when two of them overlap.
  bool areDisjoint() {
    llvm::sort(parts, [](const Part &a, const Part &b) { return a.start < b.start; });
    for (auto [left, right] : llvm::zip(parts, llvm::drop_begin(parts)))
      if (left.end > right.start)
        return false;
    return true;
  }
};

/// Zeros for `size` elements of one dimension.
Value zeros(OpBuilder &builder, Location loc, RankedTensorType type, int64_t dim, int64_t size) {
  SmallVector<int64_t> shape(type.getShape());
  shape[dim] = size;
  return splat(builder, loc, type.getElementType(), shape, 0);
}

struct ConcatOfPaddedSum final : PlainTensorPattern<arith::AddFOp> {
  using PlainTensorPattern::PlainTensorPattern;

  LogicalResult rewrite(arith::AddFOp op, PatternRewriter &rewriter) const override {
    // The whole sum is rewritten at its root.
    if (op->hasOneUse() && isa<arith::AddFOp>(*op->user_begin()))
      return failure();
    PaddedSum sum;
    if (!sum.collect(op) || sum.parts.size() < 2 || !sum.areDisjoint())
      return rewriter.notifyMatchFailure(op, "not a sum of disjoint zero-padded parts");
    auto type = cast<RankedTensorType>(op.getType());
    int64_t dim = *sum.dim, position = 0, size = type.getDimSize(dim);
    SmallVector<Value> pieces;
    for (const Part &part : sum.parts) {
      if (part.start > position)
        pieces.push_back(zeros(rewriter, op.getLoc(), type, dim, part.start - position));
      pieces.push_back(part.tensor);
      position = part.end;
    }
    if (position < size)
      pieces.push_back(zeros(rewriter, op.getLoc(), type, dim, size - position));
    Value joined = nd::concat(rewriter, op.getLoc(), pieces, dim);
    if (sum.other)
      joined = arith::AddFOp::create(rewriter, op.getLoc(), sum.other, joined);
    rewriter.replaceOp(op, joined);
    return success();
  }
};

/// A scatter that starts at zero and is then added to a tensor starts at that tensor.
struct ScatterIntoAddend final : PlainTensorPattern<arith::AddFOp> {
  using PlainTensorPattern::PlainTensorPattern;

  LogicalResult rewrite(arith::AddFOp op, PatternRewriter &rewriter) const override {
    for (auto [scattered, addend] : {std::pair(op.getLhs(), op.getRhs()), std::pair(op.getRhs(), op.getLhs())}) {
      auto scatter = plainProducer<ScatterAddOp>(scattered);
      if (!scatter || scatter.getInit() || !scatter->hasOneUse())
        continue;
      rewriter.replaceOpWithNewOp<ScatterAddOp>(op, scatter.getType(), scatter.getIndices(), scatter.getUpdates(),
                                                addend, scatter.getPaddingIdxAttr(), scatter.getShardAxesAttr());
      return success();
    }
    return failure();
  }
};

} // namespace

void nd::populateAdditionPatterns(RewritePatternSet &patterns) {
  patterns.add<ConcatOfPaddedSum, ScatterIntoAddend>(patterns.getContext());
}
