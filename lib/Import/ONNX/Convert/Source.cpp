//===- Source.cpp - Nodes that make tensors from nothing ------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "ModelFile.h"
#include "NodeConversion.h"
#include <cmath>

using namespace mlir;
using namespace nd;
using namespace nd::onnx;

namespace {

LogicalResult convertConstant(NodeConversion &node) {
  Builder &builder = node.builder();
  if (auto value = dyn_cast_or_null<DenseElementsAttr>(node.attr("value")))
    return node.replace({node.constant(toComputeType(value))});
  if (node.hasAttr("value_int"))
    return node.replace({node.reshape(node.ints({node.intAttr("value_int", 0)}), {})});
  if (auto values = node.intsAttr("value_ints"))
    return node.replace({node.ints(*values)});
  auto floats = [&](ArrayRef<float> values, ArrayRef<int64_t> shape) {
    return node.constant(DenseElementsAttr::get(RankedTensorType::get(shape, builder.getF32Type()), values));
  };
  if (node.hasAttr("value_float"))
    return node.replace({floats({static_cast<float>(node.floatAttr("value_float", 0))}, {})});
  if (auto values = dyn_cast_or_null<DenseF32ArrayAttr>(node.attr("value_floats")))
    return node.replace({floats(values.asArrayRef(), {static_cast<int64_t>(values.size())})});
  return node.error() << "holds strings, sparse data or nothing; only dense numbers are supported";
}

LogicalResult convertConstantOfShape(NodeConversion &node) {
  FailureOr<SmallVector<int64_t>> shape = node.constantInts(0, "shape");
  if (failed(shape))
    return failure();
  if (!checkedElements(*shape))
    return node.error() << "its shape has a negative or overflowing size; export the model again";
  Builder &builder = node.builder();
  auto value = dyn_cast_or_null<DenseElementsAttr>(node.attr("value"));
  if (!value)
    value = DenseElementsAttr::get(RankedTensorType::get({}, builder.getF32Type()), 0.0f);
  if (value.getNumElements() != 1)
    return node.error() << "its value is not one element; export the model again";
  value = toComputeType(value);
  Attribute element = *value.getValues<Attribute>().begin();
  return node.replace(
      {node.constant(DenseElementsAttr::get(RankedTensorType::get(*shape, value.getElementType()), element))});
}

/// start, start + delta, ... before limit: positions, never a list of numbers.
LogicalResult convertRange(NodeConversion &node) {
  FailureOr<double> start = node.constantFloat(0, "start"), limit = node.constantFloat(1, "limit"),
                    delta = node.constantFloat(2, "delta");
  if (failed(start) || failed(limit) || failed(delta))
    return failure();
  Type element = node.type(0).getElementType();
  double count = std::ceil((*limit - *start) / *delta);
  if (*delta == 0 || !(std::fabs(count) < 1e15))
    return node.error() << "from " << *start << " to " << *limit << " by " << *delta
                        << " is not a range; export the model again";
  Value position = node.iota({std::max<int64_t>(0, static_cast<int64_t>(count))}, 0);
  if (isa<FloatType>(element)) {
    Value result = node.cast(position, element);
    if (*delta != 1)
      result = node.create<arith::MulFOp>(result, node.number(result, *delta));
    if (*start != 0)
      result = node.create<arith::AddFOp>(result, node.number(result, *start));
    return node.replace({result});
  }
  if (*delta != 1)
    position = node.create<arith::MulIOp>(position, node.integer(position, static_cast<int64_t>(*delta)));
  if (*start != 0)
    position = node.create<arith::AddIOp>(position, node.integer(position, static_cast<int64_t>(*start)));
  return node.replace({position});
}

LogicalResult convertEyeLike(NodeConversion &node) {
  if (failed(node.requireOperands(1)))
    return failure();
  RankedTensorType type = node.type(0);
  if (type.getRank() != 2)
    return node.error() << "its operand " << type << " is not a matrix";
  Type element = node.hasAttr("dtype")
                     ? elementType(static_cast<int32_t>(node.intAttr("dtype", 1)), node.builder().getContext())
                     : type.getElementType();
  if (!element)
    return node.error() << "its element type is not supported";
  Value row = node.iota(type.getShape(), 0), column = node.iota(type.getShape(), 1);
  if (int64_t k = node.intAttr("k", 0))
    row = node.create<arith::AddIOp>(row, node.integer(row, k));
  return node.replace({node.cast(node.compare(arith::CmpIPredicate::eq, column, row), element)});
}

} // namespace

void nd::onnx::populateSource(OpTable &table) {
  table.onOp("Constant", 1, convertConstant);
  table.onOp("ConstantOfShape", 9, convertConstantOfShape);
  table.onOp("EyeLike", 9, convertEyeLike);
  table.onOp("Range", 11, convertRange);
}
