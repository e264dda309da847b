//===- Views.cpp - Layouts through reshapes, transposes, slices ------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Views.h"
#include "nd/Dialect/ND/IR/Builders.h"

using namespace mlir;
using namespace nd;

rt::Layout nd::contiguousLayout(ArrayRef<int64_t> shape) {
  rt::Layout layout;
  layout.strides.assign(shape.size(), 1);
  for (int64_t dim = static_cast<int64_t>(shape.size()) - 2; dim >= 0; --dim)
    layout.strides[dim] = layout.strides[dim + 1] * shape[dim + 1];
  return layout;
}

rt::Layout nd::normalized(ArrayRef<int64_t> shape, rt::Layout layout) {
  int64_t rank = shape.size();
  for (int64_t dim = rank - 1; dim >= 0; --dim)
    if (shape[dim] == 1)
      layout.strides[dim] = dim == rank - 1 ? 1 : layout.strides[dim + 1] * shape[dim + 1];
  return layout;
}

bool nd::operator==(const rt::Layout &a, const rt::Layout &b) { return a.offset == b.offset && a.strides == b.strides; }

MemRefType nd::bufferType(RankedTensorType tensor, const rt::Layout &layout) {
  if (layout == contiguousLayout(tensor.getShape()))
    return MemRefType::get(tensor.getShape(), tensor.getElementType());
  return MemRefType::get(tensor.getShape(), tensor.getElementType(),
                         StridedLayoutAttr::get(tensor.getContext(), layout.offset, layout.strides));
}

bool nd::isViewOp(Operation *op) { return isa_and_nonnull<ReshapeOp, TransposeOp, SliceOp>(op); }

std::optional<rt::Layout> nd::reshapeLayout(ArrayRef<int64_t> from, const rt::Layout &layout, ArrayRef<int64_t> to) {
  // Without dimensions of size 1, the operand is a sequence of chunks, outer to inner, each contiguous up to a stride.
  // The result's dimensions must end where chunks end.
  SmallVector<int64_t> sizes, strides;
  for (auto [size, stride] : llvm::zip_equal(from, layout.strides))
    if (size != 1) {
      sizes.push_back(size);
      strides.push_back(stride);
    }
  rt::Layout result;
  result.offset = layout.offset;
  result.strides.assign(to.size(), 1);
  int64_t next = static_cast<int64_t>(to.size()) - 1;
  for (int64_t dim = static_cast<int64_t>(sizes.size()) - 1; dim >= 0; --dim) {
    int64_t base = strides[dim], count = sizes[dim];
    while (dim > 0 && strides[dim - 1] == count * base)
      count *= sizes[--dim];
    int64_t filled = 1;
    for (; next >= 0 && (filled < count || to[next] == 1); --next) {
      result.strides[next] = filled * base;
      filled *= to[next];
    }
    if (filled != count)
      return std::nullopt;
  }
  return normalized(to, std::move(result));
}

std::optional<rt::Layout> nd::viewLayout(Operation *view, const rt::Layout &layout) {
  RankedTensorType from = tensorTypeOf(view->getOperand(0)), to = tensorTypeOf(view->getResult(0));
  if (isa<ReshapeOp>(view))
    return reshapeLayout(from.getShape(), layout, to.getShape());
  rt::Layout result;
  result.offset = layout.offset;
  if (auto transpose = dyn_cast<TransposeOp>(view)) {
    for (int64_t dim : transpose.getPermutation())
      result.strides.push_back(layout.strides[dim]);
    return normalized(to.getShape(), std::move(result));
  }
  auto slice = cast<SliceOp>(view);
  for (auto [start, step, stride] : llvm::zip_equal(slice.getStarts(), slice.getStrides(), layout.strides)) {
    result.offset += start * stride;
    result.strides.push_back(step * stride);
  }
  return normalized(to.getShape(), std::move(result));
}

std::optional<rt::Layout> nd::sourceLayout(Operation *view, const rt::Layout &layout) {
  RankedTensorType from = tensorTypeOf(view->getOperand(0)), to = tensorTypeOf(view->getResult(0));
  if (isa<ReshapeOp>(view))
    return reshapeLayout(to.getShape(), layout, from.getShape());
  auto transpose = dyn_cast<TransposeOp>(view);
  if (!transpose)
    return std::nullopt;
  rt::Layout result;
  result.offset = layout.offset;
  result.strides.assign(from.getRank(), 1);
  for (auto [stride, dim] : llvm::zip_equal(layout.strides, transpose.getPermutation()))
    result.strides[dim] = stride;
  return normalized(from.getShape(), std::move(result));
}

bool nd::hasContiguousRows(ArrayRef<int64_t> shape, const rt::Layout &layout) {
  return shape.empty() || shape.back() == 1 || layout.strides.back() == 1;
}
