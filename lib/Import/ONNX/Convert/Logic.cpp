//===- Logic.cpp - Comparisons, booleans, selection -----------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "NodeConversion.h"

using namespace mlir;
using namespace nd;
using namespace nd::onnx;

namespace {

bool isFloat(Value value) { return isa<FloatType>(tensorTypeOf(value).getElementType()); }

/// Both operands at their common shape; fails with an error when they have none or their types differ.
FailureOr<std::pair<Value, Value>> broadcastPair(NodeConversion &node) {
  if (failed(node.requireOperands(2)))
    return failure();
  auto shape = TensorBuilder::broadcastShapes(node.type(0).getShape(), node.type(1).getShape());
  if (!shape || node.type(0).getElementType() != node.type(1).getElementType())
    return node.error() << "operands of types " << node.type(0) << " and " << node.type(1) << " do not broadcast";
  return std::make_pair(node.expandTo(node.operand(0), *shape), node.expandTo(node.operand(1), *shape));
}

template <arith::CmpFPredicate floatPredicate, arith::CmpIPredicate intPredicate>
LogicalResult comparison(NodeConversion &node) {
  auto operands = broadcastPair(node);
  if (failed(operands))
    return failure();
  auto [lhs, rhs] = *operands;
  return node.replace({isFloat(lhs) ? node.compare(floatPredicate, lhs, rhs) : node.compare(intPredicate, lhs, rhs)});
}

template <typename Op> LogicalResult bitwise(NodeConversion &node) {
  auto operands = broadcastPair(node);
  if (failed(operands))
    return failure();
  if (isFloat(operands->first))
    return node.error() << "its operands are floats where booleans or integers are needed";
  return node.replace({node.create<Op>(operands->first, operands->second)});
}

LogicalResult convertNot(NodeConversion &node) {
  if (failed(node.requireOperands(1)))
    return failure();
  if (!node.type(0).getElementType().isInteger(1))
    return node.error() << "its operand is " << node.type(0) << " where booleans are needed";
  return node.replace({node.logicalNot(node.operand(0))});
}

LogicalResult convertBitwiseNot(NodeConversion &node) {
  if (failed(node.requireOperands(1)))
    return failure();
  if (isFloat(node.operand(0)))
    return node.error() << "its operand is " << node.type(0) << " where integers are needed";
  return node.replace({node.create<arith::XOrIOp>(node.operand(0), node.integer(node.operand(0), -1))});
}

LogicalResult convertIsNaN(NodeConversion &node) {
  if (failed(node.requireOperands(1)))
    return failure();
  if (!isFloat(node.operand(0)))
    return node.error() << "its operand is " << node.type(0) << " where floats are needed";
  return node.replace({node.compare(arith::CmpFPredicate::UNO, node.operand(0), node.operand(0))});
}

LogicalResult convertWhere(NodeConversion &node) {
  if (failed(node.requireOperands(3)))
    return failure();
  auto shape = TensorBuilder::broadcastShapes(node.type(1).getShape(), node.type(2).getShape());
  if (shape)
    shape = TensorBuilder::broadcastShapes(*shape, node.type(0).getShape());
  if (!shape || !node.type(0).getElementType().isInteger(1) ||
      node.type(1).getElementType() != node.type(2).getElementType())
    return node.error() << "operands of types " << node.type(0) << ", " << node.type(1) << " and " << node.type(2)
                        << " do not broadcast";
  return node.replace({node.select(node.expandTo(node.operand(0), *shape), node.expandTo(node.operand(1), *shape),
                                   node.expandTo(node.operand(2), *shape))});
}

} // namespace

void nd::onnx::populateLogic(OpTable &table) {
  using F = arith::CmpFPredicate;
  using I = arith::CmpIPredicate;
  table.onOp("Equal", 7, comparison<F::OEQ, I::eq>);
  table.onOp("Greater", 7, comparison<F::OGT, I::sgt>);
  table.onOp("GreaterOrEqual", 12, comparison<F::OGE, I::sge>);
  table.onOp("Less", 7, comparison<F::OLT, I::slt>);
  table.onOp("LessOrEqual", 12, comparison<F::OLE, I::sle>);
  table.onOp("And", 7, bitwise<arith::AndIOp>);
  table.onOp("Or", 7, bitwise<arith::OrIOp>);
  table.onOp("Xor", 7, bitwise<arith::XOrIOp>);
  table.onOp("BitwiseAnd", 18, bitwise<arith::AndIOp>);
  table.onOp("BitwiseOr", 18, bitwise<arith::OrIOp>);
  table.onOp("BitwiseXor", 18, bitwise<arith::XOrIOp>);
  table.onOp("BitwiseNot", 18, convertBitwiseNot);
  table.onOp("Not", 1, convertNot);
  table.onOp("IsNaN", 9, convertIsNaN);
  table.onOp("Where", 9, convertWhere);
}
