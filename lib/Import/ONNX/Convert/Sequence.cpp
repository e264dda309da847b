//===- Sequence.cpp - Splits, and sequences of tensors --------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "NodeConversion.h"

using namespace mlir;
using namespace nd;
using namespace nd::onnx;

namespace {

/// Consecutive parts of `sizes` along `dim`; fails with an error when they do not fill it.
FailureOr<SmallVector<Value>> splitInto(NodeConversion &node, ArrayRef<int64_t> sizes, int64_t dim) {
  RankedTensorType type = node.type(0);
  int64_t start = 0;
  SmallVector<Value> parts;
  for (int64_t size : sizes) {
    if (size < 0 || size > type.getDimSize(dim) - start)
      return node.error() << "its parts do not fit dimension " << dim << " of " << type;
    parts.push_back(node.slice(node.operand(0), dim, start, size));
    start += size;
  }
  if (start != type.getDimSize(dim))
    return node.error() << "its parts do not fill dimension " << dim << " of " << type;
  return parts;
}

/// Parts of `size`, the last one smaller when it does not divide.
SmallVector<int64_t> chunks(int64_t total, int64_t size) {
  SmallVector<int64_t> sizes;
  for (int64_t start = 0; start < total; start += size)
    sizes.push_back(std::min(size, total - start));
  return sizes;
}

LogicalResult convertSplit(NodeConversion &node) {
  if (failed(node.requireOperands(1)))
    return failure();
  FailureOr<int64_t> dim = node.axis(node.intAttr("axis", 0), node.type(0).getRank());
  auto sizes = node.intsFrom(1, "split");
  if (failed(dim) || failed(sizes))
    return failure();
  if (!*sizes) {
    int64_t total = node.type(0).getDimSize(*dim), count = node.intAttr("num_outputs", node.numResults());
    if (count <= 0 || count > std::max<int64_t>(total, 1))
      return node.error() << "cannot split " << node.type(0) << " into " << count << " parts";
    *sizes = chunks(total, (total + count - 1) / count);
  }
  auto parts = splitInto(node, **sizes, *dim);
  if (failed(parts))
    return failure();
  if (parts->size() != node.numResults())
    return node.error() << "has " << node.numResults() << " results for " << parts->size()
                        << " parts; export the model again";
  return node.replace(*parts);
}

LogicalResult convertSplitToSequence(NodeConversion &node) {
  if (failed(node.requireOperands(1)))
    return failure();
  RankedTensorType type = node.type(0);
  FailureOr<int64_t> dim = node.axis(node.intAttr("axis", 0), type.getRank());
  if (failed(dim))
    return failure();
  SmallVector<int64_t> sizes(type.getDimSize(*dim), 1);
  bool drops = !node.has(1) && node.intAttr("keepdims", 1) == 0;
  if (node.has(1)) {
    FailureOr<SmallVector<int64_t>> given = node.constantInts(1, "split");
    if (failed(given))
      return failure();
    bool isScalar = node.type(1).getRank() == 0;
    if (isScalar && given->front() <= 0)
      return node.error() << "parts of size " << given->front() << " are not possible; export the model again";
    sizes = isScalar ? chunks(type.getDimSize(*dim), given->front()) : *given;
  }
  auto parts = splitInto(node, sizes, *dim);
  if (failed(parts))
    return failure();
  if (drops)
    for (Value &part : *parts) {
      SmallVector<int64_t> shape(tensorTypeOf(part).getShape());
      shape.erase(shape.begin() + *dim);
      part = node.reshape(part, shape);
    }
  return node.replaceBySequence(*parts);
}

LogicalResult convertSequenceAt(NodeConversion &node) {
  ArrayRef<Value> parts = node.sequence(0);
  FailureOr<int64_t> index = node.has(1) ? node.constantInt(1, "position") : FailureOr<int64_t>(0);
  if (failed(index))
    return failure();
  FailureOr<int64_t> position = node.axis(*index, parts.size());
  return failed(position) ? failure() : node.replace({parts[*position]});
}

LogicalResult convertSequenceConstruct(NodeConversion &node) {
  if (failed(node.requireOperands(std::max(1u, node.numOperands()))))
    return failure();
  SmallVector<Value> parts;
  for (unsigned i = 0; i < node.numOperands(); ++i)
    parts.push_back(node.operand(i));
  return node.replaceBySequence(parts);
}

LogicalResult convertConcatFromSequence(NodeConversion &node) {
  ArrayRef<Value> parts = node.sequence(0);
  if (parts.empty())
    return node.error() << "its operand is not a sequence of tensors";
  RankedTensorType first = tensorTypeOf(parts.front());
  bool stacks = node.intAttr("new_axis", 0) != 0;
  FailureOr<int64_t> dim = node.axis(node.intAttr("axis", 0), first.getRank() + stacks);
  if (failed(dim))
    return failure();
  SmallVector<Value> values;
  for (Value part : parts) {
    RankedTensorType type = tensorTypeOf(part);
    SmallVector<int64_t> shape(type.getShape());
    if (type.getRank() != first.getRank() || type.getElementType() != first.getElementType())
      return node.error() << "its tensors " << first << " and " << type << " do not fit together";
    for (int64_t other = 0; other < first.getRank(); ++other)
      if (type.getDimSize(other) != first.getDimSize(other) && (stacks || other != *dim))
        return node.error() << "its tensors " << first << " and " << type << " do not fit together";
    if (stacks)
      shape.insert(shape.begin() + *dim, 1);
    values.push_back(node.reshape(part, shape));
  }
  return node.replace({node.concat(values, *dim)});
}

} // namespace

void nd::onnx::populateSequence(OpTable &table) {
  table.onOp("Split", 2, convertSplit);
  table.onOp("SplitToSequence", 11, convertSplitToSequence);
  table.onOp("SequenceAt", 11, convertSequenceAt);
  table.onOp("SequenceConstruct", 11, convertSequenceConstruct);
  table.onOp("ConcatFromSequence", 11, convertConcatFromSequence);
}
