//===- TensorBuilder.cpp - ONNX's conventions as tensor code --------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "TensorBuilder.h"

using namespace mlir;
using namespace nd;
using namespace nd::onnx;

Type nd::onnx::computeType(Type elementType) {
  if (elementType.isInteger() && !elementType.isInteger(1))
    return IntegerType::get(elementType.getContext(), 64);
  return elementType;
}

DenseElementsAttr nd::onnx::toComputeType(DenseElementsAttr elements) {
  Type from = elements.getElementType(), to = computeType(from);
  if (from == to)
    return elements;
  return elements.mapValues(to, [](const APInt &value) { return value.sext(64); });
}

std::optional<SmallVector<int64_t>> TensorBuilder::broadcastShapes(ArrayRef<int64_t> lhs, ArrayRef<int64_t> rhs) {
  SmallVector<int64_t> shape(std::max(lhs.size(), rhs.size()), 1);
  for (ArrayRef<int64_t> operand : {lhs, rhs}) {
    size_t shift = shape.size() - operand.size();
    for (auto [dim, size] : llvm::enumerate(operand)) {
      if (size == 1)
        continue;
      if (shape[shift + dim] != 1 && shape[shift + dim] != size)
        return std::nullopt;
      shape[shift + dim] = size;
    }
  }
  return shape;
}

Value TensorBuilder::expandTo(Value value, ArrayRef<int64_t> shape) {
  RankedTensorType type = tensorTypeOf(value);
  int64_t shift = static_cast<int64_t>(shape.size()) - type.getRank();
  SmallVector<int64_t> kept, dims;
  for (auto [dim, size] : llvm::enumerate(type.getShape())) {
    if (size != shape[shift + dim])
      continue; // a size of 1 that stretches
    kept.push_back(size);
    dims.push_back(shift + dim);
  }
  return nd::broadcastTo(b, where, reshape(value, kept), shape, dims);
}

Value TensorBuilder::ints(ArrayRef<int64_t> values) {
  return constant(DenseElementsAttr::get(RankedTensorType::get({int64_t(values.size())}, b.getI64Type()), values));
}

Value TensorBuilder::logicalNot(Value value) { return create<arith::XOrIOp>(value, integer(value, 1)); }

Value TensorBuilder::reduce(ReductionKind kind, Value value, ArrayRef<int64_t> dims, bool keep) {
  Value result = nd::reduce(b, where, kind, value, dims);
  if (!keep)
    return result;
  SmallVector<int64_t> shape(tensorTypeOf(value).getShape());
  for (int64_t dim : dims)
    shape[dim] = 1;
  return reshape(result, shape);
}

Value TensorBuilder::mean(Value value, ArrayRef<int64_t> dims, bool keep) {
  int64_t count = 1;
  for (int64_t dim : dims)
    count *= tensorTypeOf(value).getDimSize(dim);
  Value sum = reduce(ReductionKind::sum, value, dims, keep);
  return create<arith::DivFOp>(sum, number(sum, static_cast<double>(count)));
}

Value TensorBuilder::cast(Value value, Type elementType) {
  RankedTensorType type = tensorTypeOf(value);
  Type from = type.getElementType(), to = computeType(elementType);
  if (from == to)
    return value;
  auto result = RankedTensorType::get(type.getShape(), to);
  bool fromBool = from.isInteger(1);
  if (std::optional<APFloat> known = nd::floatSplatOf(value); known && to.isInteger(1))
    return nd::splat(b, where, to, type.getShape(), !known->isZero());
  if (to.isInteger(1))
    return isa<FloatType>(from) ? compare(arith::CmpFPredicate::UNE, value, number(value, 0))
                                : compare(arith::CmpIPredicate::ne, value, integer(value, 0));
  if (isa<FloatType>(from) && isa<FloatType>(to))
    return nd::convertFloat(b, where, value, to);
  if (isa<FloatType>(from))
    return arith::FPToSIOp::create(b, where, result, value);
  if (isa<FloatType>(to))
    return fromBool ? Value(arith::UIToFPOp::create(b, where, result, value))
                    : Value(arith::SIToFPOp::create(b, where, result, value));
  return arith::ExtUIOp::create(b, where, result, value);
}

Value TensorBuilder::matmul(Value lhs, Value rhs) {
  int64_t lhsRank = tensorTypeOf(lhs).getRank(), rhsRank = tensorTypeOf(rhs).getRank();
  if (lhsRank == 0 || rhsRank == 0)
    return {};
  Type element = tensorTypeOf(lhs).getElementType();
  int64_t k = tensorTypeOf(lhs).getShape().back();
  if (tensorTypeOf(rhs).getDimSize(rhsRank == 1 ? 0 : rhsRank - 2) != k)
    return {};
  // Without batch dimensions on the right, all of the left's are free: one contraction, no broadcast.
  if (rhsRank <= 2)
    return nd::dotGeneral(b, where, lhs, rhs, {}, {}, {lhsRank - 1}, {0}, element);
  if (lhsRank == 1) {
    Value row = reshape(lhs, {1, k});
    Value product = matmul(row, rhs);
    SmallVector<int64_t> shape(tensorTypeOf(product).getShape());
    shape.erase(shape.end() - 2);
    return reshape(product, shape);
  }
  auto batch = broadcastShapes(tensorTypeOf(lhs).getShape().drop_back(2), tensorTypeOf(rhs).getShape().drop_back(2));
  if (!batch)
    return {};
  auto withBatch = [&](Value operand) {
    SmallVector<int64_t> shape(*batch);
    llvm::append_range(shape, tensorTypeOf(operand).getShape().take_back(2));
    return expandTo(operand, shape);
  };
  int64_t rank = batch->size();
  SmallVector<int64_t> batchDims = nd::sequence(rank);
  return nd::dotGeneral(b, where, withBatch(lhs), withBatch(rhs), batchDims, batchDims, {rank + 1}, {rank}, element);
}
