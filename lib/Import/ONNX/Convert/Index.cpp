//===- Index.cpp - Gathers ------------------------------------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Analysis/Positions.h"
#include "NodeConversion.h"

using namespace mlir;
using namespace nd;
using namespace nd::onnx;

namespace {

LogicalResult requireInts(NodeConversion &node, unsigned i) {
  if (failed(node.requireOperands(i + 1)))
    return failure();
  if (!node.type(i).getElementType().isInteger(64))
    return node.error() << "its indices are " << node.type(i) << " where integers are needed";
  return success();
}

/// Indices known at import: a slice when they are evenly spaced. Null when they are not; an error when one is outside.
FailureOr<Value> gatherByConstant(NodeConversion &node, const ConstantTensor &indices, int64_t dim) {
  RankedTensorType type = node.type(0);
  int64_t size = type.getDimSize(dim);
  SmallVector<int64_t> positions;
  for (int64_t index : indices.ints) {
    if (index < -size || index >= size)
      return node.error() << "index " << index << " is outside dimension " << dim << " of " << type
                          << "; export the model again";
    positions.push_back(index < 0 ? index + size : index);
  }
  if (positions.empty())
    return Value();
  int64_t stride = positions.size() > 1 ? positions[1] - positions[0] : 1;
  for (size_t i = 1; i < positions.size(); ++i)
    if (positions[i] - positions[i - 1] != stride)
      stride = 0;
  Value result;
  if (stride > 0) {
    SmallVector<int64_t> shape(type.getShape()), starts(type.getRank(), 0), strides(type.getRank(), 1);
    shape[dim] = positions.size();
    starts[dim] = positions.front();
    strides[dim] = stride;
    result =
        ArrayRef<int64_t>(shape) == type.getShape()
            ? node.operand(0)
            : Value(SliceOp::create(node.builder(), node.loc(), type.clone(shape), node.operand(0), starts, strides));
  } else {
    result = takeAlong(node, node.operand(0), node.ints(positions), dim);
  }
  SmallVector<int64_t> shape(type.getShape().take_front(dim));
  llvm::append_range(shape, indices.shape);
  llvm::append_range(shape, type.getShape().drop_front(dim + 1));
  return node.reshape(result, shape);
}

LogicalResult convertGather(NodeConversion &node) {
  if (failed(requireInts(node, 1)))
    return failure();
  FailureOr<int64_t> dim = node.axis(node.intAttr("axis", 0), node.type(0).getRank());
  if (failed(dim))
    return failure();
  if (std::optional<ConstantTensor> indices = node.evaluate(node.operand(1))) {
    FailureOr<Value> result = gatherByConstant(node, *indices, *dim);
    if (failed(result))
      return failure();
    if (*result)
      return node.replace({*result});
  }
  Value indices = wrapNegative(node, node.operand(1), node.type(0).getDimSize(*dim));
  return node.replace({takeAlong(node, node.operand(0), indices, *dim)});
}

LogicalResult convertGatherElements(NodeConversion &node) {
  if (failed(requireInts(node, 1)))
    return failure();
  RankedTensorType type = node.type(0), indexType = node.type(1);
  FailureOr<int64_t> dim = node.axis(node.intAttr("axis", 0), type.getRank());
  if (failed(dim))
    return failure();
  if (indexType.getRank() != type.getRank())
    return node.error() << "its operands " << type << " and " << indexType << " differ in rank";
  Value input = node.operand(0);
  for (int64_t other = 0; other < type.getRank(); ++other) {
    if (other == *dim)
      continue;
    if (indexType.getDimSize(other) > type.getDimSize(other))
      return node.error() << "its indices " << indexType << " are larger than " << type;
    input = node.slice(input, other, 0, indexType.getDimSize(other));
  }
  Value indices = wrapNegative(node, node.operand(1), type.getDimSize(*dim));
  return node.replace(
      {TakeAlongOp::create(node.builder(), node.loc(), type.clone(indexType.getShape()), input, indices, *dim)});
}

/// Element (i..., c) of the indices names one position in dimension c: the tensors of positions, one for each c.
SmallVector<Value> indexComponents(NodeConversion &node, Value indices) {
  RankedTensorType type = tensorTypeOf(indices);
  int64_t last = type.getRank() - 1, count = type.getDimSize(last);
  ArrayRef<int64_t> shape = type.getShape().drop_back();
  SmallVector<Value> components;
  auto concat = indices.getDefiningOp<ConcatOp>();
  bool areParts = concat && concat.getDim() == uint64_t(last) && int64_t(concat.getInputs().size()) == count;
  for (int64_t i = 0; i < count; ++i)
    components.push_back(node.reshape(areParts ? concat.getInputs()[i] : node.slice(indices, last, i, 1), shape));
  return components;
}

/// Where every component counts along a dimension of its own, the gather only moves dimensions: no index is needed.
Value gatherByPosition(NodeConversion &node, ArrayRef<Value> components, ArrayRef<int64_t> resultShape) {
  RankedTensorType type = node.type(0);
  int64_t depth = components.size(), outer = static_cast<int64_t>(resultShape.size()) - (type.getRank() - depth);
  // (dimension of the result, dimension of the data), for data dimensions larger than 1.
  SmallVector<std::pair<int64_t, int64_t>> moves;
  for (auto [dim, component] : llvm::enumerate(components)) {
    std::optional<Linear> linear = analyzeLinear(component);
    if (!linear)
      return {};
    if (type.getDimSize(dim) == 1 && linear->isConstant() && linear->offset == 0)
      continue;
    std::optional<int64_t> counted = linear->countedDim();
    if (!counted || resultShape[*counted] != type.getDimSize(dim))
      return {};
    moves.push_back({*counted, dim});
  }
  for (int64_t dim = depth; dim < type.getRank(); ++dim)
    moves.push_back({outer + dim - depth, dim});
  llvm::sort(moves);
  SmallVector<int64_t> kept, order, dims;
  for (auto [to, from] : moves) {
    if (llvm::is_contained(dims, to))
      return {};
    dims.push_back(to);
    order.push_back(from);
  }
  // Remove the dimensions of size 1 that no component moves, then permute the others.
  SmallVector<int64_t> sorted(order);
  llvm::sort(sorted);
  for (int64_t dim : sorted)
    kept.push_back(type.getDimSize(dim));
  SmallVector<int64_t> permutation;
  for (int64_t dim : order)
    permutation.push_back(llvm::lower_bound(sorted, dim) - sorted.begin());
  Value value = node.transpose(node.reshape(node.operand(0), kept), permutation);
  return nd::broadcastTo(node.builder(), node.loc(), value, resultShape, dims);
}

LogicalResult convertGatherND(NodeConversion &node) {
  if (failed(requireInts(node, 1)))
    return failure();
  RankedTensorType type = node.type(0), indexType = node.type(1);
  int64_t batch = node.intAttr("batch_dims", 0);
  int64_t count = indexType.getRank() == 0 ? 0 : indexType.getShape().back();
  if (count < 1 || batch < 0 || batch >= indexType.getRank() || batch + count > type.getRank() ||
      type.getShape().take_front(batch) != indexType.getShape().take_front(batch))
    return node.error() << "its indices " << indexType << " do not fit " << type;
  SmallVector<Value> components;
  ArrayRef<int64_t> outer = indexType.getShape().drop_back();
  for (int64_t dim = 0; dim < batch; ++dim)
    components.push_back(node.iota(outer, dim));
  llvm::append_range(components, indexComponents(node, node.operand(1)));
  SmallVector<int64_t> shape(outer);
  llvm::append_range(shape, type.getShape().drop_front(components.size()));
  if (Value moved = gatherByPosition(node, components, shape))
    return node.replace({moved});
  FlatIndex flat = flattenIndex(node, components, type);
  return node.replace(
      {node.reshape(takeAlong(node, node.reshape(node.operand(0), flat.rowsShape), flat.indices, 0), shape)});
}

LogicalResult convertOneHot(NodeConversion &node) {
  if (failed(requireInts(node, 0)))
    return failure();
  FailureOr<int64_t> depth = node.constantInt(1, "depth");
  if (failed(depth) || failed(node.requireOperands(3)))
    return failure();
  RankedTensorType type = node.type(0), valueType = node.type(2);
  FailureOr<int64_t> dim = node.axis(node.intAttr("axis", -1), type.getRank() + 1);
  if (failed(dim))
    return failure();
  if (*depth < 0 || valueType.getShape() != ArrayRef<int64_t>{2})
    return node.error() << "depth " << *depth << " with values " << valueType
                        << " is not possible; export the model again";
  SmallVector<int64_t> shape(type.getShape()), unit(type.getShape());
  shape.insert(shape.begin() + *dim, *depth);
  unit.insert(unit.begin() + *dim, 1);
  Value index = node.expandTo(node.reshape(wrapNegative(node, node.operand(0), *depth), unit), shape);
  Value isHot = node.compare(arith::CmpIPredicate::eq, index, node.iota(shape, *dim));
  auto value = [&](int64_t i) { return node.expandTo(node.reshape(node.slice(node.operand(2), 0, i, 1), {}), shape); };
  return node.replace({node.select(isHot, value(1), value(0))});
}

} // namespace

Value nd::onnx::wrapNegative(TensorBuilder &builder, Value indices, int64_t size) {
  if (isNonNegative(indices))
    return indices;
  Value isNegative = builder.compare(arith::CmpIPredicate::slt, indices, builder.integer(indices, 0));
  Value wrapped = builder.create<arith::AddIOp>(indices, builder.integer(indices, size));
  return builder.select(isNegative, wrapped, indices);
}

FlatIndex nd::onnx::flattenIndex(TensorBuilder &builder, ArrayRef<Value> components, RankedTensorType type) {
  FlatIndex result;
  int64_t rows = 1;
  for (auto [dim, component] : llvm::enumerate(components)) {
    int64_t size = type.getDimSize(dim);
    Value index = wrapNegative(builder, component, size);
    if (result.indices) {
      Value scaled = builder.create<arith::MulIOp>(result.indices, builder.integer(index, size));
      index = builder.create<arith::AddIOp>(scaled, index);
    }
    result.indices = index;
    rows *= size;
  }
  result.rowsShape.push_back(rows);
  llvm::append_range(result.rowsShape, type.getShape().drop_front(components.size()));
  return result;
}

void nd::onnx::populateIndex(OpTable &table) {
  table.onOp("Gather", 1, convertGather);
  table.onOp("GatherElements", 11, convertGatherElements);
  table.onOp("GatherND", 11, convertGatherND);
  table.onOp("OneHot", 9, convertOneHot);
}
