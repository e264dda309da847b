//===- ReductionOps.cpp - Contractions and reductions: verifiers ----------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Verify.h"
#include "nd/Dialect/ND/IR/Builders.h"
#include "nd/Dialect/ND/IR/ND.h"

using namespace mlir;
using namespace nd;

#define GET_OP_CLASSES
#include "nd/Dialect/ND/IR/NDReductionOps.cpp.inc"

namespace {

SmallVector<int64_t> freeDims(int64_t rank, ArrayRef<int64_t> batch, ArrayRef<int64_t> contract) {
  SmallVector<int64_t> free;
  for (int64_t dim : llvm::seq(rank))
    if (!llvm::is_contained(batch, dim) && !llvm::is_contained(contract, dim))
      free.push_back(dim);
  return free;
}

/// Lists that pair dimensions of `lhs` with dimensions of `rhs`.
LogicalResult verifyPairs(DotGeneralOp op, StringRef name, ArrayRef<int64_t> lhsDims, ArrayRef<int64_t> rhsDims) {
  if (lhsDims.size() != rhsDims.size())
    return op.emitOpError() << "expected as many " << name << " dimensions of lhs as of rhs but found "
                            << verify::text(lhsDims) << " and " << verify::text(rhsDims);
  for (auto [lhs, rhs] : llvm::zip_equal(lhsDims, rhsDims)) {
    int64_t lhsSize = op.getLhs().getType().getDimSize(lhs), rhsSize = op.getRhs().getType().getDimSize(rhs);
    if (lhsSize != rhsSize)
      return op.emitOpError() << "expected equal sizes of the paired " << name << " dimensions but found " << lhsSize
                              << " (dimension " << lhs << " of lhs) and " << rhsSize << " (dimension " << rhs
                              << " of rhs)";
  }
  return success();
}

} // namespace

SmallVector<int64_t> DotGeneralOp::getLhsFree() {
  return freeDims(getLhs().getType().getRank(), getLhsBatch(), getLhsContract());
}

SmallVector<int64_t> DotGeneralOp::getRhsFree() {
  return freeDims(getRhs().getType().getRank(), getRhsBatch(), getRhsContract());
}

LogicalResult DotGeneralOp::verify() {
  RankedTensorType lhs = getLhs().getType(), rhs = getRhs().getType(), result = getResult().getType();
  auto used = [](ArrayRef<int64_t> batch, ArrayRef<int64_t> contract) {
    SmallVector<int64_t> dims(batch);
    llvm::append_range(dims, contract);
    return dims;
  };
  if (failed(verify::distinctDims(*this, "batch and contracted dimensions of lhs",
                                  used(getLhsBatch(), getLhsContract()), lhs.getRank())) ||
      failed(verify::distinctDims(*this, "batch and contracted dimensions of rhs",
                                  used(getRhsBatch(), getRhsContract()), rhs.getRank())) ||
      failed(verifyPairs(*this, "batch", getLhsBatch(), getRhsBatch())) ||
      failed(verifyPairs(*this, "contracted", getLhsContract(), getRhsContract())))
    return failure();
  SmallVector<int64_t> expected;
  for (int64_t dim : getLhsBatch())
    expected.push_back(lhs.getDimSize(dim));
  for (int64_t dim : getLhsFree())
    expected.push_back(lhs.getDimSize(dim));
  for (int64_t dim : getRhsFree())
    expected.push_back(rhs.getDimSize(dim));
  if (failed(verify::shape(*this, "result", result, expected)))
    return failure();
  if (result.getElementType() != lhs.getElementType() && !result.getElementType().isF32())
    return emitOpError() << "expected result of element type " << lhs.getElementType()
                         << ", the operands', or f32 but found " << result.getElementType();
  return success();
}

LogicalResult ReduceOp::verify() {
  RankedTensorType input = getInput().getType();
  bool logical = input.getElementType().isInteger(1) && getKind() != ReductionKind::sum;
  if (!logical && failed(verify::numeric(*this, "input", input)))
    return failure();
  if (failed(verify::increasingDims(*this, "dims", getDims(), input.getRank())))
    return failure();
  if (getKind() != ReductionKind::sum)
    for (int64_t dim : getDims())
      if (input.getDimSize(dim) == 0)
        return emitOpError() << "expected a " << stringifyReductionKind(getKind())
                             << " over at least one element but found size 0 in dimension " << dim;
  return verify::shape(*this, "result", getResult().getType(), verify::without(input.getShape(), getDims()));
}

LogicalResult ArgMaxOp::verify() {
  RankedTensorType input = getInput().getType();
  if (failed(verify::numeric(*this, "input", input)) ||
      failed(verify::dimInRange(*this, "dim", getDim(), input.getRank())))
    return failure();
  if (input.getDimSize(getDim()) == 0)
    return emitOpError() << "expected at least one element along dim " << getDim();
  return verify::shape(*this, "result", getResult().getType(),
                       verify::without(input.getShape(), static_cast<int64_t>(getDim())));
}

LogicalResult TopKOp::verify() {
  RankedTensorType input = getInput().getType(), values = getValues().getType();
  if (failed(verify::numeric(*this, "input", input)))
    return failure();
  if (input.getRank() == 0)
    return emitOpError() << "expected input of rank 1 or more but found rank 0";
  if (failed(verify::rank(*this, "values", values, input.getRank(), "that of input")) ||
      failed(verify::elementType(*this, "values", values, input.getElementType())))
    return failure();
  int64_t size = input.getShape().back(), count = values.getShape().back();
  if (count > size)
    return emitOpError() << "expected at most " << size << " values, the size of the last dimension, but found "
                         << count;
  SmallVector<int64_t> expected(input.getShape());
  expected.back() = count;
  if (failed(verify::shape(*this, "values", values, expected)))
    return failure();
  return verify::shape(*this, "indices", getIndices().getType(), expected);
}

LogicalResult CumSumOp::verify() {
  RankedTensorType input = getInput().getType();
  if (failed(verify::numeric(*this, "input", input)))
    return failure();
  return verify::dimInRange(*this, "dim", getDim(), input.getRank());
}
