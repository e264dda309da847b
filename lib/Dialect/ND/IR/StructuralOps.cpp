//===- StructuralOps.cpp - Data movement: verifiers -----------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Verify.h"
#include "nd/Dialect/ND/IR/ND.h"
#include "llvm/Support/CheckedArithmetic.h"

using namespace mlir;
using namespace nd;

#define GET_OP_CLASSES
#include "nd/Dialect/ND/IR/NDStructuralOps.cpp.inc"

namespace {

/// One entry per dimension, none below `least`.
LogicalResult verifyPerDimension(Operation *op, StringRef name, ArrayRef<int64_t> values, int64_t rank, int64_t least) {
  if (static_cast<int64_t>(values.size()) != rank)
    return op->emitOpError() << "expected one entry of " << name << " per dimension of the operand, " << rank
                             << ", but found " << values.size();
  for (int64_t value : values)
    if (value < least)
      return op->emitOpError() << "expected " << name << " of at least " << least << " but found "
                               << verify::text(values);
  return success();
}

} // namespace

LogicalResult BroadcastOp::verify() {
  RankedTensorType input = getInput().getType(), result = getResult().getType();
  ArrayRef<int64_t> dims = getDims();
  if (static_cast<int64_t>(dims.size()) != input.getRank())
    return emitOpError() << "expected one entry of dims per dimension of the operand, " << input.getRank()
                         << ", but found " << verify::text(dims);
  if (failed(verify::increasingDims(*this, "dims", dims, result.getRank())))
    return failure();
  for (auto [dim, size] : llvm::zip_equal(dims, input.getShape()))
    if (result.getDimSize(dim) != size)
      return emitOpError() << "expected dimension " << dim << " of the result to have the operand's size " << size
                           << " but found " << result.getDimSize(dim)
                           << "; a dimension of size 1 is not stretched: reshape it away";
  return success();
}

LogicalResult ReshapeOp::verify() {
  ArrayRef<int64_t> from = getInput().getType().getShape(), to = getResult().getType().getShape();
  std::optional<int64_t> before = verify::elementCount(from), after = verify::elementCount(to);
  if (!before || !after)
    return emitOpError() << "expected fewer than 2^63 elements but found shapes " << verify::text(from) << " and "
                         << verify::text(to);
  if (*before != *after)
    return emitOpError() << "expected as many elements as the operand has, " << *before << " in " << verify::text(from)
                         << ", but found " << *after << " in " << verify::text(to);
  return success();
}

LogicalResult TransposeOp::verify() {
  RankedTensorType input = getInput().getType();
  ArrayRef<int64_t> permutation = getPermutation();
  if (static_cast<int64_t>(permutation.size()) != input.getRank())
    return emitOpError() << "expected a permutation of the operand's " << input.getRank() << " dimensions but found "
                         << verify::text(permutation);
  if (failed(verify::distinctDims(*this, "permutation", permutation, input.getRank())))
    return failure();
  SmallVector<int64_t> expected;
  for (int64_t dim : permutation)
    expected.push_back(input.getDimSize(dim));
  return verify::shape(*this, "result", getResult().getType(), expected);
}

LogicalResult SliceOp::verify() {
  RankedTensorType input = getInput().getType(), result = getResult().getType();
  if (failed(verify::rank(*this, "result", result, input.getRank(), "the operand's")) ||
      failed(verifyPerDimension(*this, "starts", getStarts(), input.getRank(), 0)) ||
      failed(verifyPerDimension(*this, "strides", getStrides(), input.getRank(), 1)))
    return failure();
  for (int64_t dim : llvm::seq(input.getRank())) {
    int64_t size = input.getDimSize(dim), start = getStarts()[dim], stride = getStrides()[dim];
    // start + (count - 1) * stride < size, without overflow.
    int64_t available = start < size ? (size - 1 - start) / stride + 1 : 0;
    if (result.getDimSize(dim) > available)
      return emitOpError() << "expected at most " << available << " elements in dimension " << dim << ", from " << start
                           << " by " << stride << " within " << size << ", but found " << result.getDimSize(dim);
  }
  return success();
}

LogicalResult PadOp::verify() {
  RankedTensorType input = getInput().getType();
  if (failed(verify::rank(*this, "value", getValue().getType(), 0, "one number")) ||
      failed(verifyPerDimension(*this, "low", getLow(), input.getRank(), 0)) ||
      failed(verifyPerDimension(*this, "high", getHigh(), input.getRank(), 0)) ||
      failed(verifyPerDimension(*this, "interior", getInterior(), input.getRank(), 0)))
    return failure();
  SmallVector<int64_t> expected;
  for (int64_t dim : llvm::seq(input.getRank())) {
    int64_t size = input.getDimSize(dim), gaps = size > 0 ? size - 1 : 0;
    std::optional<int64_t> padded = llvm::checkedMulAdd(gaps, getInterior()[dim], size);
    for (int64_t amount : {getLow()[dim], getHigh()[dim]})
      if (padded)
        padded = llvm::checkedAdd(*padded, amount);
    if (!padded)
      return emitOpError() << "expected a padded size below 2^63 in dimension " << dim;
    expected.push_back(*padded);
  }
  return verify::shape(*this, "result", getResult().getType(), expected);
}

LogicalResult ConcatOp::verify() {
  if (getInputs().empty())
    return emitOpError() << "expected at least one operand";
  auto first = cast<RankedTensorType>(getInputs().front().getType());
  int64_t dim = getDim();
  if (failed(verify::dimInRange(*this, "dim", dim, first.getRank())))
    return failure();
  SmallVector<int64_t> expected(first.getShape());
  expected[dim] = 0;
  for (auto [index, input] : llvm::enumerate(getInputs())) {
    auto type = cast<RankedTensorType>(input.getType());
    std::string name = "operand " + std::to_string(index);
    if (failed(verify::rank(*this, name, type, first.getRank(), "that of operand 0")) ||
        failed(verify::elementType(*this, name, type, first.getElementType())))
      return failure();
    SmallVector<int64_t> shape(first.getShape());
    shape[dim] = type.getDimSize(dim);
    if (failed(verify::shape(*this, name, type, shape)))
      return failure();
    std::optional<int64_t> sum = llvm::checkedAdd(expected[dim], type.getDimSize(dim));
    if (!sum)
      return emitOpError() << "expected a size below 2^63 in dimension " << dim;
    expected[dim] = *sum;
  }
  if (failed(verify::elementType(*this, "result", getResult().getType(), first.getElementType())))
    return failure();
  return verify::shape(*this, "result", getResult().getType(), expected);
}

LogicalResult IotaOp::verify() {
  if (failed(verify::dimInRange(*this, "dim", getDim(), getResult().getType().getRank())))
    return failure();
  return verify::numeric(*this, "result", getResult().getType());
}
