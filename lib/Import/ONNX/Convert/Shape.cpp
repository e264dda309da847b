//===- Shape.cpp - Shapes and data movement -------------------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "ModelFile.h"
#include "NodeConversion.h"

using namespace mlir;
using namespace nd;
using namespace nd::onnx;

namespace {

/// `dims` of a shape operand, refused unless they are sizes.
LogicalResult checkSizes(NodeConversion &node, ArrayRef<int64_t> sizes) {
  if (!checkedElements(sizes))
    return node.error() << "its shape has a negative or overflowing size; export the model again";
  return success();
}

LogicalResult convertShape(NodeConversion &node) {
  if (failed(node.requireOperands(1)))
    return failure();
  ArrayRef<int64_t> shape = node.type(0).getShape();
  int64_t rank = shape.size();
  auto clamp = [&](int64_t position) {
    return std::clamp<int64_t>(position < 0 ? position + rank : position, 0, rank);
  };
  int64_t start = clamp(node.intAttr("start", 0)), end = clamp(node.intAttr("end", rank));
  return node.replace({node.ints(shape.slice(start, std::max<int64_t>(0, end - start)))});
}

LogicalResult convertSize(NodeConversion &node) {
  if (failed(node.requireOperands(1)))
    return failure();
  return node.replace({node.reshape(node.ints({node.type(0).getNumElements()}), {})});
}

LogicalResult convertReshape(NodeConversion &node) {
  FailureOr<SmallVector<int64_t>> shape = node.constantInts(1, "shape");
  if (failed(shape))
    return failure();
  RankedTensorType type = node.type(0);
  bool allowZero = node.intAttr("allowzero", 0) != 0;
  int64_t open = -1;
  for (auto [dim, size] : llvm::enumerate(*shape)) {
    if (size == 0 && !allowZero) {
      if (int64_t(dim) >= type.getRank())
        return node.error() << "its shape copies dimension " << dim << " of " << type << ", which does not exist";
      size = type.getDimSize(dim);
    } else if (size == -1) {
      if (open >= 0)
        return node.error() << "its shape leaves two sizes open; export the model again";
      open = dim;
    }
  }
  if (open >= 0) {
    (*shape)[open] = 1;
    std::optional<int64_t> others = checkedElements(*shape);
    if (!others || *others == 0 || type.getNumElements() % *others != 0)
      return node.error() << type << " cannot be reshaped: its size is not a multiple of the given sizes";
    (*shape)[open] = type.getNumElements() / *others;
  }
  if (failed(checkSizes(node, *shape)))
    return failure();
  if (*checkedElements(*shape) != type.getNumElements())
    return node.error() << type << " does not have the number of elements of its new shape; check --batch and --seq";
  return node.replace({node.reshape(node.operand(0), *shape)});
}

LogicalResult convertFlatten(NodeConversion &node) {
  if (failed(node.requireOperands(1)))
    return failure();
  RankedTensorType type = node.type(0);
  int64_t axis = node.intAttr("axis", 1), rank = type.getRank();
  if (axis < -rank || axis > rank)
    return node.error() << "axis " << axis << " is outside a tensor of rank " << rank;
  int64_t rows = 1;
  for (int64_t size : type.getShape().take_front(axis < 0 ? axis + rank : axis))
    rows *= size;
  int64_t columns = rows == 0 ? 0 : type.getNumElements() / rows;
  return node.replace({node.reshape(node.operand(0), {rows, columns})});
}

LogicalResult convertSqueeze(NodeConversion &node) {
  if (failed(node.requireOperands(1)))
    return failure();
  auto given = node.intsFrom(1, "axes");
  if (failed(given))
    return failure();
  RankedTensorType type = node.type(0);
  SmallVector<int64_t> shape;
  auto dims = node.axes(given->value_or(SmallVector<int64_t>()), type.getRank());
  if (failed(dims))
    return failure();
  for (auto [dim, size] : llvm::enumerate(type.getShape())) {
    bool squeezed = *given ? llvm::is_contained(*dims, int64_t(dim)) : size == 1;
    if (squeezed && size != 1)
      return node.error() << "dimension " << dim << " of " << type << " is not 1";
    if (!squeezed)
      shape.push_back(size);
  }
  return node.replace({node.reshape(node.operand(0), shape)});
}

LogicalResult convertUnsqueeze(NodeConversion &node) {
  if (failed(node.requireOperands(1)))
    return failure();
  auto given = node.intsFrom(1, "axes");
  if (failed(given))
    return failure();
  if (!*given)
    return node.error() << "its axes are missing; export the model again";
  RankedTensorType type = node.type(0);
  int64_t rank = type.getRank() + static_cast<int64_t>((*given)->size());
  auto dims = node.axes(**given, rank);
  if (failed(dims))
    return failure();
  SmallVector<int64_t> shape;
  const int64_t *next = type.getShape().begin();
  for (int64_t dim = 0; dim < rank; ++dim)
    shape.push_back(llvm::is_contained(*dims, dim) ? 1 : *next++);
  return node.replace({node.reshape(node.operand(0), shape)});
}

LogicalResult convertTranspose(NodeConversion &node) {
  if (failed(node.requireOperands(1)))
    return failure();
  int64_t rank = node.type(0).getRank();
  SmallVector<int64_t> permutation = node.intsAttr("perm").value_or(llvm::to_vector(llvm::reverse(nd::sequence(rank))));
  SmallVector<int64_t> sorted(permutation);
  llvm::sort(sorted);
  if (sorted != nd::sequence(rank))
    return node.error() << "its permutation does not fit " << node.type(0) << "; export the model again";
  return node.replace({node.transpose(node.operand(0), permutation)});
}

LogicalResult convertExpand(NodeConversion &node) {
  FailureOr<SmallVector<int64_t>> sizes = node.constantInts(1, "shape");
  if (failed(sizes) || failed(checkSizes(node, *sizes)))
    return failure();
  auto shape = TensorBuilder::broadcastShapes(node.type(0).getShape(), *sizes);
  if (!shape)
    return node.error() << node.type(0) << " does not broadcast to its shape; check --batch and --seq";
  return node.replace({node.expandTo(node.operand(0), *shape)});
}

LogicalResult convertConcat(NodeConversion &node) {
  if (failed(node.requireOperands(std::max(1u, node.numOperands()))))
    return failure();
  RankedTensorType first = node.type(0);
  FailureOr<int64_t> axis = node.axis(node.intAttr("axis", 0), first.getRank());
  if (failed(axis))
    return failure();
  SmallVector<Value> parts;
  for (unsigned i = 0; i < node.numOperands(); ++i) {
    RankedTensorType type = node.type(i);
    bool fits = type.getRank() == first.getRank() && type.getElementType() == first.getElementType();
    for (int64_t dim = 0; fits && dim < first.getRank(); ++dim)
      fits = dim == *axis || type.getDimSize(dim) == first.getDimSize(dim);
    if (!fits)
      return node.error() << "operands " << first << " and " << type << " cannot be concatenated along dimension "
                          << *axis;
    if (type.getDimSize(*axis) > 0)
      parts.push_back(node.operand(i));
  }
  return node.replace({parts.empty() ? node.operand(0) : node.concat(parts, *axis)});
}

/// Starts, ends, axes and steps are operands from opset 10 on. A negative step reads rows in reverse.
LogicalResult convertSlice(NodeConversion &node) {
  if (failed(node.requireOperands(1)))
    return failure();
  auto starts = node.intsFrom(1, "starts"), ends = node.intsFrom(2, "ends"), given = node.intsFrom(3, "axes"),
       steps = node.intsFrom(4, "steps");
  if (failed(starts) || failed(ends) || failed(given) || failed(steps))
    return failure();
  RankedTensorType type = node.type(0);
  if (!*starts || !*ends || (*starts)->size() != (*ends)->size())
    return node.error() << "its starts and ends differ in number; export the model again";
  size_t count = (*starts)->size();
  SmallVector<int64_t> positions = given->value_or(nd::sequence(count));
  SmallVector<int64_t> strideOf = steps->value_or(SmallVector<int64_t>(count, 1));
  if (positions.size() != count || strideOf.size() != count)
    return node.error() << "its axes or steps differ in number from its starts; export the model again";
  if (failed(node.axes(positions, type.getRank())))
    return failure();
  SmallVector<int64_t> shape(type.getShape()), from(type.getRank(), 0), strides(type.getRank(), 1), reversed;
  for (size_t i = 0; i < count; ++i) {
    int64_t dim = positions[i] < 0 ? positions[i] + type.getRank() : positions[i];
    int64_t size = type.getDimSize(dim), step = strideOf[i], begin = (**starts)[i], end = (**ends)[i];
    if (step == 0 || step == std::numeric_limits<int64_t>::min())
      return node.error() << "step " << step << " is not possible; export the model again";
    if (size == 0)
      continue;
    auto clamp = [&](int64_t position, int64_t low, int64_t high) {
      return std::clamp(position < 0 ? position + size : position, low, high);
    };
    begin = step > 0 ? clamp(begin, 0, size) : clamp(begin, 0, size - 1);
    end = step > 0 ? clamp(end, 0, size) : clamp(end, -1, size - 1);
    int64_t distance = step > 0 ? end - begin : begin - end, stride = std::abs(step);
    shape[dim] = distance <= 0 ? 0 : (distance - 1) / stride + 1;
    strides[dim] = shape[dim] <= 1 ? 1 : stride;
    from[dim] = step > 0 || shape[dim] == 0 ? std::min(begin, std::max<int64_t>(size - 1, 0))
                                            : begin - (shape[dim] - 1) * stride;
    if (step < 0 && shape[dim] > 1)
      reversed.push_back(dim);
  }
  Value result = node.operand(0);
  if (ArrayRef<int64_t>(shape) != type.getShape())
    result = SliceOp::create(node.builder(), node.loc(), type.clone(shape), result, from, strides);
  for (int64_t dim : reversed) {
    SmallVector<int64_t> order = llvm::to_vector(llvm::reverse(nd::sequence(shape[dim])));
    result = takeAlong(node, result, node.ints(order), dim);
  }
  return node.replace({result});
}

LogicalResult convertTile(NodeConversion &node) {
  FailureOr<SmallVector<int64_t>> repeats = node.constantInts(1, "repeats");
  if (failed(repeats))
    return failure();
  RankedTensorType type = node.type(0);
  if (int64_t(repeats->size()) != type.getRank() || failed(checkSizes(node, *repeats)))
    return node.error() << "its repeats do not fit " << type;
  // Each repeated dimension becomes (repeats, size), the first of which is a broadcast.
  SmallVector<int64_t> split, dims, merged;
  for (auto [dim, size] : llvm::enumerate(type.getShape())) {
    int64_t times = (*repeats)[dim];
    if (times != 1)
      split.push_back(times);
    dims.push_back(split.size());
    split.push_back(size);
    int64_t product;
    if (llvm::MulOverflow(size, times, product))
      return node.error() << "its result is too large";
    merged.push_back(product);
  }
  if (failed(checkSizes(node, merged)))
    return failure();
  Value repeated = nd::broadcastTo(node.builder(), node.loc(), node.operand(0), split, dims);
  return node.replace({node.reshape(repeated, merged)});
}

/// Only padding with a constant. Negative amounts cut.
LogicalResult convertPad(NodeConversion &node) {
  if (failed(node.requireOperands(1)))
    return failure();
  auto amounts = node.intsFrom(1, "pads"), given = node.intsFrom(3, "axes");
  if (failed(amounts) || failed(given))
    return failure();
  if (node.stringAttr("mode", "constant") != "constant")
    return node.error() << "mode \"" << node.stringAttr("mode", "") << "\" is not supported; only constant padding is";
  RankedTensorType type = node.type(0);
  int64_t rank = type.getRank();
  auto dims = node.axes(given->value_or(nd::sequence(rank)), rank);
  if (failed(dims))
    return failure();
  SmallVector<int64_t> order = given->value_or(nd::sequence(rank));
  if (!*amounts || (*amounts)->size() != 2 * order.size())
    return node.error() << "its amounts do not fit " << type << "; export the model again";
  Value value = node.has(2) ? node.reshape(node.operand(2), {})
                            : nd::scalar(node.builder(), node.loc(), type.getElementType(), node.floatAttr("value", 0));
  if (tensorTypeOf(value).getElementType() != type.getElementType())
    return node.error() << "pads " << type << " with a value of another type";

  SmallVector<int64_t> low(rank, 0), high(rank, 0), shape(type.getShape());
  Value result = node.operand(0);
  for (auto [i, axis] : llvm::enumerate(order)) {
    int64_t dim = axis < 0 ? axis + rank : axis;
    int64_t before = (**amounts)[i], after = (**amounts)[order.size() + i];
    int64_t cutBefore = std::max<int64_t>(0, -before), cutAfter = std::max<int64_t>(0, -after);
    if (cutBefore > shape[dim] || cutAfter > shape[dim] - cutBefore)
      return node.error() << "cuts more from dimension " << dim << " of " << type << " than it has";
    result = node.slice(result, dim, cutBefore, shape[dim] - cutBefore - cutAfter);
    low[dim] = std::max<int64_t>(0, before);
    high[dim] = std::max<int64_t>(0, after);
    shape[dim] = tensorTypeOf(result).getDimSize(dim);
    if (llvm::AddOverflow(shape[dim], low[dim], shape[dim]) || llvm::AddOverflow(shape[dim], high[dim], shape[dim]))
      return node.error() << "its result is too large";
  }
  if (failed(checkSizes(node, shape)))
    return failure();
  if (ArrayRef<int64_t>(shape) != tensorTypeOf(result).getShape())
    result = PadOp::create(node.builder(), node.loc(), type.clone(shape), result, value, low, high,
                           SmallVector<int64_t>(rank, 0));
  return node.replace({result});
}

/// Keeps the triangle where column - row >= k (upper) or <= k, by a comparison of positions.
LogicalResult convertTrilu(NodeConversion &node) {
  if (failed(node.requireOperands(1)))
    return failure();
  int64_t k = 0;
  if (node.has(1)) {
    FailureOr<int64_t> given = node.constantInt(1, "k");
    if (failed(given))
      return failure();
    k = *given;
  }
  RankedTensorType type = node.type(0);
  if (type.getRank() < 2)
    return node.error() << "its operand " << type << " is not a matrix";
  ArrayRef<int64_t> shape = type.getShape();
  SmallVector<int64_t> matrix(shape.take_back(2));
  Value row = node.iota(matrix, 0), column = node.iota(matrix, 1);
  if (k != 0)
    row = node.create<arith::AddIOp>(row, node.integer(row, k));
  bool upper = node.intAttr("upper", 1) != 0;
  Value keeps = node.compare(upper ? arith::CmpIPredicate::sge : arith::CmpIPredicate::sle, column, row);
  Value x = node.operand(0);
  Value zero = isa<FloatType>(type.getElementType()) ? node.number(x, 0) : node.integer(x, 0);
  return node.replace({node.select(node.expandTo(keeps, shape), x, zero)});
}

} // namespace

Value nd::onnx::takeAlong(TensorBuilder &builder, Value table, Value indices, int64_t dim) {
  RankedTensorType type = tensorTypeOf(table);
  int64_t rank = type.getRank(), indexRank = tensorTypeOf(indices).getRank();
  SmallVector<int64_t> front = {dim};
  for (int64_t other = 0; other < rank; ++other)
    if (other != dim)
      front.push_back(other);
  Value rows = builder.transpose(table, front);
  SmallVector<int64_t> shape(tensorTypeOf(indices).getShape());
  llvm::append_range(shape, tensorTypeOf(rows).getShape().drop_front());
  Value taken =
      TakeOp::create(builder.builder(), builder.loc(), type.clone(shape), rows, indices, IntegerAttr(), ArrayAttr());
  // The indices' dimensions go where `dim` was.
  SmallVector<int64_t> back;
  for (int64_t other = 0; other < dim; ++other)
    back.push_back(indexRank + other);
  llvm::append_range(back, nd::sequence(indexRank));
  for (int64_t other = dim + 1; other < rank; ++other)
    back.push_back(indexRank + other - 1);
  return builder.transpose(taken, back);
}

void nd::onnx::populateShape(OpTable &table) {
  table.onOp("Shape", 1, convertShape);
  table.onOp("Size", 1, convertSize);
  table.onOp("Reshape", 5, convertReshape);
  table.onOp("Flatten", 1, convertFlatten);
  table.onOp("Squeeze", 1, convertSqueeze);
  table.onOp("Unsqueeze", 1, convertUnsqueeze);
  table.onOp("Transpose", 1, convertTranspose);
  table.onOp("Expand", 8, convertExpand);
  table.onOp("Concat", 4, convertConcat);
  table.onOp("Slice", 1, convertSlice);
  table.onOp("Tile", 6, convertTile);
  table.onOp("Pad", 2, convertPad);
  table.onOp("Trilu", 14, convertTrilu);
}
