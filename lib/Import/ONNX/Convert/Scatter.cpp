//===- Scatter.cpp - Scatters ---------------------------------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// ONNX leaves repeated indices undefined unless the updates are added, so that "written" is the sum of what was
// written, where anything was, and the old value elsewhere.
//
//===----------------------------------------------------------------------===//

#include "NodeConversion.h"

using namespace mlir;
using namespace nd;
using namespace nd::onnx;

namespace {

LogicalResult checkOperands(NodeConversion &node) {
  if (failed(node.requireOperands(3)))
    return failure();
  if (!isa<FloatType>(node.type(0).getElementType()) ||
      node.type(2).getElementType() != node.type(0).getElementType() || !node.type(1).getElementType().isInteger(64))
    return node.error() << "operands " << node.type(0) << ", " << node.type(1) << " and " << node.type(2)
                        << " are not supported; only floats are scattered";
  StringRef reduction = node.stringAttr("reduction", "none");
  if (reduction != "none" && reduction != "add")
    return node.error() << "reduction \"" << reduction << "\" is not supported; none and add are";
  return success();
}

/// `added` where `counts` says that something was written, else `data`.
Value written(NodeConversion &node, Value counts, Value added, Value data) {
  Value isWritten = node.compare(arith::CmpFPredicate::OGT, counts, node.number(counts, 0));
  return node.select(isWritten, added, data);
}

LogicalResult convertScatterND(NodeConversion &node) {
  if (failed(checkOperands(node)))
    return failure();
  RankedTensorType type = node.type(0), indexType = node.type(1);
  int64_t count = indexType.getRank() == 0 ? 0 : indexType.getShape().back();
  SmallVector<int64_t> updateShape(indexType.getShape().drop_back(indexType.getRank() == 0 ? 0 : 1));
  if (count < 1 || count > type.getRank())
    return node.error() << "its indices " << indexType << " do not fit " << type;
  llvm::append_range(updateShape, type.getShape().drop_front(count));
  if (node.type(2).getShape() != ArrayRef<int64_t>(updateShape))
    return node.error() << "its updates " << node.type(2) << " do not fit its indices " << indexType;
  SmallVector<Value> components;
  for (int64_t i = 0; i < count; ++i)
    components.push_back(
        node.reshape(node.slice(node.operand(1), indexType.getRank() - 1, i, 1), indexType.getShape().drop_back()));
  FlatIndex flat = flattenIndex(node, components, type);
  Value data = node.reshape(node.operand(0), flat.rowsShape), updates = node.operand(2);
  auto scatter = [&](Value values, Value init) {
    return Value(ScatterAddOp::create(node.builder(), node.loc(), data.getType(), flat.indices, values, init,
                                      IntegerAttr(), ArrayAttr()));
  };
  Value result = node.stringAttr("reduction", "none") == "add"
                     ? scatter(updates, data)
                     : written(node, scatter(node.number(updates, 1), {}), scatter(updates, {}), data);
  return node.replace({node.reshape(result, type.getShape())});
}

LogicalResult convertScatterElements(NodeConversion &node) {
  if (failed(checkOperands(node)))
    return failure();
  RankedTensorType type = node.type(0), indexType = node.type(1);
  FailureOr<int64_t> dim = node.axis(node.intAttr("axis", 0), type.getRank());
  if (failed(dim))
    return failure();
  bool fits = indexType.getShape() == node.type(2).getShape() && indexType.getRank() == type.getRank();
  for (int64_t other = 0; fits && other < type.getRank(); ++other)
    fits = other == *dim || indexType.getDimSize(other) == type.getDimSize(other);
  if (!fits)
    return node.error() << "its indices " << indexType << " do not cover " << type << " in all dimensions but the axis";
  Value indices = wrapNegative(node, node.operand(1), type.getDimSize(*dim)), updates = node.operand(2),
        data = node.operand(0);
  auto scatter = [&](Value values) {
    return Value(ScatterAddAlongOp::create(node.builder(), node.loc(), type, indices, values, *dim));
  };
  if (node.stringAttr("reduction", "none") == "add")
    return node.replace({node.create<arith::AddFOp>(data, scatter(updates))});
  return node.replace({written(node, scatter(node.number(updates, 1)), scatter(updates), data)});
}

} // namespace

void nd::onnx::populateScatter(OpTable &table) {
  table.onOp("ScatterND", 11, convertScatterND);
  table.onOp("ScatterElements", 11, convertScatterElements);
}
