//===- Builders.cpp - Short forms for building tensor code ----------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "nd/Dialect/ND/IR/Builders.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace nd;

RankedTensorType nd::tensorTypeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

RankedTensorType nd::withShape(RankedTensorType type, ArrayRef<int64_t> shape) {
  return RankedTensorType::get(shape, type.getElementType());
}

SmallVector<int64_t> nd::invertPermutation(ArrayRef<int64_t> permutation) {
  SmallVector<int64_t> inverse(permutation.size());
  for (auto [position, dim] : llvm::enumerate(permutation))
    inverse[dim] = position;
  return inverse;
}

SmallVector<int64_t> nd::sequence(int64_t count, int64_t start) {
  return llvm::to_vector(llvm::seq(start, start + count));
}

Value nd::splat(OpBuilder &builder, Location loc, Type elementType, ArrayRef<int64_t> shape, double number) {
  auto type = RankedTensorType::get(shape, elementType);
  Attribute element = isa<FloatType>(elementType)
                          ? Attribute(builder.getFloatAttr(elementType, number))
                          : Attribute(builder.getIntegerAttr(elementType, static_cast<int64_t>(number)));
  return arith::ConstantOp::create(builder, loc, DenseElementsAttr::get(type, element));
}

Value nd::splatLike(OpBuilder &builder, Location loc, Value like, double number) {
  RankedTensorType type = tensorTypeOf(like);
  return splat(builder, loc, type.getElementType(), type.getShape(), number);
}

Value nd::intSplatLike(OpBuilder &builder, Location loc, Value like, int64_t number) {
  RankedTensorType type = withShape(tensorTypeOf(like), tensorTypeOf(like).getShape());
  Attribute element = builder.getIntegerAttr(type.getElementType(), number);
  return arith::ConstantOp::create(builder, loc, DenseElementsAttr::get(type, element));
}

Value nd::scalar(OpBuilder &builder, Location loc, Type elementType, double number) {
  return splat(builder, loc, elementType, {}, number);
}

std::optional<APFloat> nd::floatSplatOf(Value value) {
  DenseElementsAttr elements;
  if (!matchPattern(value, m_Constant(&elements)) || !elements.isSplat() || !isa<FloatType>(elements.getElementType()))
    return std::nullopt;
  return elements.getSplatValue<APFloat>();
}

bool nd::isZeroSplat(Value value) {
  DenseElementsAttr elements;
  if (!matchPattern(value, m_Constant(&elements)) || !elements.isSplat())
    return false;
  if (isa<FloatType>(elements.getElementType()))
    return elements.getSplatValue<APFloat>().isPosZero();
  return elements.getElementType().isSignlessInteger() && elements.getSplatValue<APInt>().isZero();
}

Value nd::broadcastTo(OpBuilder &builder, Location loc, Value value, ArrayRef<int64_t> shape, ArrayRef<int64_t> dims) {
  RankedTensorType type = tensorTypeOf(value);
  if (type.getShape() == shape)
    return value;
  return BroadcastOp::create(builder, loc, withShape(type, shape), value, dims);
}

Value nd::broadcastScalar(OpBuilder &builder, Location loc, Value value, ArrayRef<int64_t> shape) {
  return broadcastTo(builder, loc, value, shape, {});
}

Value nd::broadcastTrailing(OpBuilder &builder, Location loc, Value value, ArrayRef<int64_t> shape) {
  int64_t rank = tensorTypeOf(value).getRank();
  return broadcastTo(builder, loc, value, shape, sequence(rank, static_cast<int64_t>(shape.size()) - rank));
}

Value nd::broadcastOver(OpBuilder &builder, Location loc, Value value, ArrayRef<int64_t> shape,
                        ArrayRef<int64_t> dims) {
  SmallVector<int64_t> kept;
  for (int64_t dim : llvm::seq<int64_t>(shape.size()))
    if (!llvm::is_contained(dims, dim))
      kept.push_back(dim);
  return broadcastTo(builder, loc, value, shape, kept);
}

Value nd::reduce(OpBuilder &builder, Location loc, ReductionKind kind, Value value, ArrayRef<int64_t> dims) {
  if (dims.empty())
    return value;
  RankedTensorType type = tensorTypeOf(value);
  SmallVector<int64_t> sorted(dims), shape;
  llvm::sort(sorted);
  for (auto [dim, size] : llvm::enumerate(type.getShape()))
    if (!llvm::is_contained(dims, static_cast<int64_t>(dim)))
      shape.push_back(size);
  return ReduceOp::create(builder, loc, withShape(type, shape), kind, value, sorted);
}

Value nd::reduceSum(OpBuilder &builder, Location loc, Value value, ArrayRef<int64_t> dims) {
  return reduce(builder, loc, ReductionKind::sum, value, dims);
}

Value nd::reduceSumAll(OpBuilder &builder, Location loc, Value value) {
  return reduceSum(builder, loc, value, sequence(tensorTypeOf(value).getRank()));
}

Value nd::reshape(OpBuilder &builder, Location loc, Value value, ArrayRef<int64_t> shape) {
  RankedTensorType type = tensorTypeOf(value);
  if (type.getShape() == shape)
    return value;
  return ReshapeOp::create(builder, loc, withShape(type, shape), value);
}

Value nd::transpose(OpBuilder &builder, Location loc, Value value, ArrayRef<int64_t> permutation) {
  if (llvm::is_sorted(permutation))
    return value;
  RankedTensorType type = tensorTypeOf(value);
  SmallVector<int64_t> shape;
  for (int64_t dim : permutation)
    shape.push_back(type.getDimSize(dim));
  return TransposeOp::create(builder, loc, withShape(type, shape), value, permutation);
}

Value nd::slice(OpBuilder &builder, Location loc, Value value, int64_t dim, int64_t start, int64_t size) {
  RankedTensorType type = tensorTypeOf(value);
  if (start == 0 && size == type.getDimSize(dim))
    return value;
  SmallVector<int64_t> shape(type.getShape()), starts(type.getRank(), 0), strides(type.getRank(), 1);
  shape[dim] = size;
  starts[dim] = start;
  return SliceOp::create(builder, loc, withShape(type, shape), value, starts, strides);
}

Value nd::concat(OpBuilder &builder, Location loc, ValueRange values, int64_t dim) {
  if (values.size() == 1)
    return values.front();
  RankedTensorType type = tensorTypeOf(values.front());
  SmallVector<int64_t> shape(type.getShape());
  shape[dim] = 0;
  for (Value value : values)
    shape[dim] += tensorTypeOf(value).getDimSize(dim);
  return ConcatOp::create(builder, loc, withShape(type, shape), values, dim);
}

Value nd::iota(OpBuilder &builder, Location loc, Type elementType, ArrayRef<int64_t> shape, int64_t dim) {
  return IotaOp::create(builder, loc, RankedTensorType::get(shape, elementType), dim, ArrayAttr());
}

Value nd::dotGeneral(OpBuilder &builder, Location loc, Value lhs, Value rhs, ArrayRef<int64_t> lhsBatch,
                     ArrayRef<int64_t> rhsBatch, ArrayRef<int64_t> lhsContract, ArrayRef<int64_t> rhsContract,
                     Type resultElementType) {
  SmallVector<int64_t> shape;
  for (int64_t dim : lhsBatch)
    shape.push_back(tensorTypeOf(lhs).getDimSize(dim));
  auto appendFree = [&](Value operand, ArrayRef<int64_t> batch, ArrayRef<int64_t> contract) {
    for (auto [dim, size] : llvm::enumerate(tensorTypeOf(operand).getShape()))
      if (!llvm::is_contained(batch, static_cast<int64_t>(dim)) &&
          !llvm::is_contained(contract, static_cast<int64_t>(dim)))
        shape.push_back(size);
  };
  appendFree(lhs, lhsBatch, lhsContract);
  appendFree(rhs, rhsBatch, rhsContract);
  return DotGeneralOp::create(builder, loc, RankedTensorType::get(shape, resultElementType), lhs, rhs, lhsBatch,
                              rhsBatch, lhsContract, rhsContract);
}

Value nd::convertFloat(OpBuilder &builder, Location loc, Value value, Type elementType) {
  RankedTensorType type = tensorTypeOf(value);
  auto from = cast<FloatType>(type.getElementType()), to = cast<FloatType>(elementType);
  if (from == to)
    return value;
  RankedTensorType result = RankedTensorType::get(type.getShape(), to);
  if (from.getWidth() < to.getWidth())
    return arith::ExtFOp::create(builder, loc, result, value);
  if (from.getWidth() > to.getWidth())
    return arith::TruncFOp::create(builder, loc, result, value);
  // Formats of equal width (f16 and bf16) have no direct conversion.
  Value wide = convertFloat(builder, loc, value, builder.getF32Type());
  return convertFloat(builder, loc, wide, to);
}

Value nd::select(OpBuilder &builder, Location loc, Value condition, Value whenTrue, Value whenFalse) {
  return arith::SelectOp::create(builder, loc, condition, whenTrue, whenFalse);
}
