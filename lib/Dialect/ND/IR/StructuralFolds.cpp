//===- StructuralFolds.cpp - Data movement: folders and patterns ----------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Movement moves towards the operands (a slice of a broadcast is a broadcast of a slice), chains become one operation,
// and no pattern has an inverse: that is why they terminate.
//
//===----------------------------------------------------------------------===//

#include "Patterns.h"
#include "llvm/Support/CheckedArithmetic.h"

using namespace mlir;
using namespace nd;

//===----------------------------------------------------------------------===//
// broadcast
//===----------------------------------------------------------------------===//

namespace {

struct BroadcastOfBroadcast final : PlainTensorPattern<BroadcastOp> {
  using PlainTensorPattern::PlainTensorPattern;

  LogicalResult rewrite(BroadcastOp op, PatternRewriter &rewriter) const override {
    auto inner = plainProducer<BroadcastOp>(op.getInput());
    if (!inner)
      return failure();
    SmallVector<int64_t> dims;
    for (int64_t dim : inner.getDims())
      dims.push_back(op.getDims()[dim]);
    rewriter.replaceOpWithNewOp<BroadcastOp>(op, op.getType(), inner.getInput(), dims);
    return success();
  }
};

} // namespace

OpFoldResult BroadcastOp::fold(FoldAdaptor adaptor) {
  if (getInput().getType() == getType())
    return getInput();
  return splatOfType(adaptor.getInput(), getType());
}

void BroadcastOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<BroadcastOfBroadcast>(context);
}

//===----------------------------------------------------------------------===//
// reshape
//===----------------------------------------------------------------------===//

namespace {

struct ReshapeOfReshape final : PlainTensorPattern<ReshapeOp> {
  using PlainTensorPattern::PlainTensorPattern;

  LogicalResult rewrite(ReshapeOp op, PatternRewriter &rewriter) const override {
    auto inner = plainProducer<ReshapeOp>(op.getInput());
    if (!inner)
      return failure();
    rewriter.replaceOpWithNewOp<ReshapeOp>(op, op.getType(), inner.getInput());
    return success();
  }
};

struct ReshapeOfRepeatedScalar final : PlainTensorPattern<ReshapeOp> {
  using PlainTensorPattern::PlainTensorPattern;

  LogicalResult rewrite(ReshapeOp op, PatternRewriter &rewriter) const override {
    auto broadcast = plainProducer<BroadcastOp>(op.getInput());
    if (!broadcast || broadcast.getInput().getType().getRank() != 0)
      return failure();
    rewriter.replaceOpWithNewOp<BroadcastOp>(op, op.getType(), broadcast.getInput(), ArrayRef<int64_t>());
    return success();
  }
};

} // namespace

OpFoldResult ReshapeOp::fold(FoldAdaptor adaptor) {
  if (getInput().getType() == getType())
    return getInput();
  if (auto elements = dyn_cast_or_null<DenseElementsAttr>(adaptor.getInput()))
    return elements.reshape(getType());
  return {};
}

void ReshapeOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<ReshapeOfReshape, ReshapeOfRepeatedScalar>(context);
}

//===----------------------------------------------------------------------===//
// transpose
//===----------------------------------------------------------------------===//

namespace {

struct TransposeOfTranspose final : PlainTensorPattern<TransposeOp> {
  using PlainTensorPattern::PlainTensorPattern;

  LogicalResult rewrite(TransposeOp op, PatternRewriter &rewriter) const override {
    auto inner = plainProducer<TransposeOp>(op.getInput());
    if (!inner)
      return failure();
    SmallVector<int64_t> permutation;
    for (int64_t dim : op.getPermutation())
      permutation.push_back(inner.getPermutation()[dim]);
    rewriter.replaceOpWithNewOp<TransposeOp>(op, op.getType(), inner.getInput(), permutation);
    return success();
  }
};

/// Only dimensions of size 1 change places: the elements stay where they are.
struct TransposeOfUnitDims final : PlainTensorPattern<TransposeOp> {
  using PlainTensorPattern::PlainTensorPattern;

  LogicalResult rewrite(TransposeOp op, PatternRewriter &rewriter) const override {
    int64_t previous = -1;
    for (int64_t dim : op.getPermutation()) {
      if (op.getInput().getType().getDimSize(dim) == 1)
        continue;
      if (dim < previous)
        return failure();
      previous = dim;
    }
    rewriter.replaceOpWithNewOp<ReshapeOp>(op, op.getType(), op.getInput());
    return success();
  }
};

struct TransposeOfBroadcast final : PlainTensorPattern<TransposeOp> {
  using PlainTensorPattern::PlainTensorPattern;

  LogicalResult rewrite(TransposeOp op, PatternRewriter &rewriter) const override {
    auto broadcast = plainProducer<BroadcastOp>(op.getInput());
    if (!broadcast)
      return failure();
    SmallVector<int64_t> inverse = invertPermutation(op.getPermutation()), dims;
    for (int64_t dim : broadcast.getDims())
      dims.push_back(inverse[dim]);
    if (!llvm::is_sorted(dims))
      return rewriter.notifyMatchFailure(op, "the broadcast tensor's own dimensions change places");
    rewriter.replaceOpWithNewOp<BroadcastOp>(op, op.getType(), broadcast.getInput(), dims);
    return success();
  }
};

} // namespace

OpFoldResult TransposeOp::fold(FoldAdaptor adaptor) {
  if (llvm::is_sorted(getPermutation()) && getInput().getType() == getType())
    return getInput();
  return splatOfType(adaptor.getInput(), getType());
}

void TransposeOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<TransposeOfTranspose, TransposeOfUnitDims, TransposeOfBroadcast>(context);
}

//===----------------------------------------------------------------------===//
// slice
//===----------------------------------------------------------------------===//

namespace {

/// The last index that a slice with elements reads in a dimension.
int64_t lastIndex(SliceOp slice, int64_t dim) {
  return slice.getStarts()[dim] + (slice.getType().getDimSize(dim) - 1) * slice.getStrides()[dim];
}

struct SliceOfSlice final : PlainTensorPattern<SliceOp> {
  using PlainTensorPattern::PlainTensorPattern;

  LogicalResult rewrite(SliceOp op, PatternRewriter &rewriter) const override {
    auto inner = plainProducer<SliceOp>(op.getInput());
    if (!inner || op.getType().getNumElements() == 0)
      return failure();
    SmallVector<int64_t> starts, strides;
    for (int64_t dim : llvm::seq(op.getType().getRank())) {
      // An index of an element that exists does not overflow; strides are free where only one element is read.
      starts.push_back(inner.getStarts()[dim] + op.getStarts()[dim] * inner.getStrides()[dim]);
      bool single = op.getType().getDimSize(dim) == 1;
      strides.push_back(single ? 1 : inner.getStrides()[dim] * op.getStrides()[dim]);
    }
    rewriter.replaceOpWithNewOp<SliceOp>(op, op.getType(), inner.getInput(), starts, strides);
    return success();
  }
};

/// All elements come from one part.
struct SliceOfConcat final : PlainTensorPattern<SliceOp> {
  using PlainTensorPattern::PlainTensorPattern;

  LogicalResult rewrite(SliceOp op, PatternRewriter &rewriter) const override {
    auto concat = plainProducer<ConcatOp>(op.getInput());
    if (!concat || op.getType().getNumElements() == 0)
      return failure();
    int64_t dim = concat.getDim(), offset = 0;
    for (Value part : concat.getInputs()) {
      int64_t end = offset + tensorTypeOf(part).getDimSize(dim);
      if (op.getStarts()[dim] < end) {
        if (lastIndex(op, dim) >= end)
          return rewriter.notifyMatchFailure(op, "reads several parts");
        SmallVector<int64_t> starts(op.getStarts());
        starts[dim] -= offset;
        rewriter.replaceOpWithNewOp<SliceOp>(op, op.getType(), part, starts, op.getStrides());
        return success();
      }
      offset = end;
    }
    return failure();
  }
};

struct SliceOfBroadcast final : PlainTensorPattern<SliceOp> {
  using PlainTensorPattern::PlainTensorPattern;

  LogicalResult rewrite(SliceOp op, PatternRewriter &rewriter) const override {
    auto broadcast = plainProducer<BroadcastOp>(op.getInput());
    if (!broadcast)
      return failure();
    SmallVector<int64_t> shape, starts, strides;
    for (int64_t dim : broadcast.getDims()) {
      shape.push_back(op.getType().getDimSize(dim));
      starts.push_back(op.getStarts()[dim]);
      strides.push_back(op.getStrides()[dim]);
    }
    Value source = broadcast.getInput();
    if (tensorTypeOf(source).getShape() != ArrayRef<int64_t>(shape))
      source = SliceOp::create(rewriter, op.getLoc(), withShape(op.getType(), shape), source, starts, strides);
    rewriter.replaceOpWithNewOp<BroadcastOp>(op, op.getType(), source, broadcast.getDims());
    return success();
  }
};

/// All elements come from the padded tensor, or none does.
struct SliceOfPad final : PlainTensorPattern<SliceOp> {
  using PlainTensorPattern::PlainTensorPattern;

  LogicalResult rewrite(SliceOp op, PatternRewriter &rewriter) const override {
    auto pad = plainProducer<PadOp>(op.getInput());
    if (!pad || op.getType().getNumElements() == 0 || llvm::any_of(pad.getInterior(), [](int64_t n) { return n > 0; }))
      return failure();
    bool inside = true;
    SmallVector<int64_t> starts(op.getStarts());
    for (int64_t dim : llvm::seq(op.getType().getRank())) {
      int64_t low = pad.getLow()[dim], end = low + pad.getInput().getType().getDimSize(dim);
      if (lastIndex(op, dim) < low || starts[dim] >= end) {
        rewriter.replaceOpWithNewOp<BroadcastOp>(op, op.getType(), pad.getValue(), ArrayRef<int64_t>());
        return success();
      }
      inside &= starts[dim] >= low && lastIndex(op, dim) < end;
      starts[dim] -= low;
    }
    if (!inside)
      return rewriter.notifyMatchFailure(op, "reads both the tensor and its padding");
    rewriter.replaceOpWithNewOp<SliceOp>(op, op.getType(), pad.getInput(), starts, op.getStrides());
    return success();
  }
};

} // namespace

OpFoldResult SliceOp::fold(FoldAdaptor adaptor) {
  // Within equal shapes there is only one start, and no room for a stride.
  if (getInput().getType() == getType())
    return getInput();
  return splatOfType(adaptor.getInput(), getType());
}

void SliceOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<SliceOfSlice, SliceOfConcat, SliceOfBroadcast, SliceOfPad>(context);
}

//===----------------------------------------------------------------------===//
// pad
//===----------------------------------------------------------------------===//

namespace {

struct PadOfPad final : PlainTensorPattern<PadOp> {
  using PlainTensorPattern::PlainTensorPattern;

  LogicalResult rewrite(PadOp op, PatternRewriter &rewriter) const override {
    auto inner = plainProducer<PadOp>(op.getInput());
    if (!inner || inner.getValue() != op.getValue())
      return failure();
    SmallVector<int64_t> low, high;
    for (int64_t dim : llvm::seq(op.getType().getRank())) {
      if (inner.getInterior()[dim] > 0 || op.getInterior()[dim] > 0)
        return failure();
      low.push_back(inner.getLow()[dim] + op.getLow()[dim]);
      high.push_back(inner.getHigh()[dim] + op.getHigh()[dim]);
    }
    rewriter.replaceOpWithNewOp<PadOp>(op, op.getType(), inner.getInput(), op.getValue(), low, high, op.getInterior());
    return success();
  }
};

} // namespace

OpFoldResult PadOp::fold(FoldAdaptor adaptor) {
  // Amounts are not negative: equal shapes leave no element to pad.
  if (getInput().getType() == getType())
    return getInput();
  Attribute value = splatOfType(adaptor.getValue(), getType());
  if (value && value == splatOfType(adaptor.getInput(), getType()))
    return value;
  return {};
}

void PadOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<PadOfPad>(context);
}

//===----------------------------------------------------------------------===//
// concat
//===----------------------------------------------------------------------===//

namespace {

/// The slice that reads what `left` reads and then what `right` reads along `dim`; null when that is no slice.
SliceOp mergeSlices(SliceOp left, SliceOp right, int64_t dim, PatternRewriter &rewriter) {
  if (left.getInput() != right.getInput() || left.getStrides() != right.getStrides())
    return {};
  RankedTensorType type = left.getType();
  for (int64_t other : llvm::seq(type.getRank()))
    if (other != dim && (left.getStarts()[other] != right.getStarts()[other] ||
                         type.getDimSize(other) != right.getType().getDimSize(other)))
      return {};
  if (type.getNumElements() == 0 || right.getStarts()[dim] - left.getStrides()[dim] != lastIndex(left, dim))
    return {};
  SmallVector<int64_t> shape(type.getShape());
  shape[dim] += right.getType().getDimSize(dim);
  return SliceOp::create(rewriter, left.getLoc(), withShape(type, shape), left.getInput(), left.getStarts(),
                         left.getStrides());
}

/// Opens concatenations that only this one reads, drops empty parts, and joins neighbouring slices of one value.
struct SimplifyConcat final : PlainTensorPattern<ConcatOp> {
  using PlainTensorPattern::PlainTensorPattern;

  LogicalResult rewrite(ConcatOp op, PatternRewriter &rewriter) const override {
    int64_t dim = op.getDim();
    SmallVector<Value> opened;
    for (Value part : op.getInputs()) {
      auto inner = plainProducer<ConcatOp>(part);
      if (inner && static_cast<int64_t>(inner.getDim()) == dim && inner->hasOneUse())
        llvm::append_range(opened, inner.getInputs());
      else
        opened.push_back(part);
    }
    SmallVector<Value> parts;
    for (Value part : opened) {
      if (tensorTypeOf(part).getDimSize(dim) == 0)
        continue;
      auto previous = parts.empty() ? SliceOp() : plainProducer<SliceOp>(parts.back());
      auto slice = plainProducer<SliceOp>(part);
      if (SliceOp merged = previous && slice ? mergeSlices(previous, slice, dim, rewriter) : SliceOp())
        parts.back() = merged;
      else
        parts.push_back(part);
    }
    if (parts.empty() || llvm::equal(parts, op.getInputs()))
      return failure();
    if (parts.size() == 1)
      rewriter.replaceOp(op, parts.front());
    else
      rewriter.replaceOpWithNewOp<ConcatOp>(op, op.getType(), parts, dim);
    return success();
  }
};

} // namespace

OpFoldResult ConcatOp::fold(FoldAdaptor adaptor) {
  if (getInputs().size() == 1 && getInputs().front().getType() == getType())
    return getInputs().front();
  Attribute first = splatOfType(adaptor.getInputs().front(), getType());
  if (first && llvm::all_of(adaptor.getInputs(), [&](Attribute part) { return splatOfType(part, getType()) == first; }))
    return first;
  return {};
}

void ConcatOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<SimplifyConcat>(context);
}
