//===- IndexOps.cpp - Gathers and scatters: verifiers ---------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Verify.h"
#include "nd/Dialect/ND/IR/ND.h"

using namespace mlir;
using namespace nd;

#define GET_OP_CLASSES
#include "nd/Dialect/ND/IR/NDIndexOps.cpp.inc"

namespace {

/// The shape of rows of `table` picked by `indices`.
SmallVector<int64_t> rowsShape(RankedTensorType indices, RankedTensorType table) {
  SmallVector<int64_t> shape(indices.getShape());
  llvm::append_range(shape, table.getShape().drop_front());
  return shape;
}

LogicalResult verifyTable(Operation *op, StringRef name, RankedTensorType table, std::optional<int64_t> paddingIdx) {
  if (table.getRank() == 0)
    return op->emitOpError() << "expected " << name << " of rank 1 or more (rows first) but found rank 0";
  if (paddingIdx)
    return verify::dimInRange(op, "padding_idx", *paddingIdx, table.getDimSize(0));
  return success();
}

/// Two tensors that differ in nothing but the extent of `dim`.
LogicalResult verifyAlong(Operation *op, int64_t dim, StringRef name, RankedTensorType type, StringRef otherName,
                          RankedTensorType other) {
  if (failed(verify::dimInRange(op, "dim", dim, other.getRank())) ||
      failed(verify::rank(op, name, type, other.getRank(), "that of " + otherName.str())))
    return failure();
  SmallVector<int64_t> expected(other.getShape());
  expected[dim] = type.getDimSize(dim);
  return verify::shape(op, name, type, expected);
}

} // namespace

LogicalResult TakeOp::verify() {
  RankedTensorType table = getTable().getType(), indices = getIndices().getType();
  if (failed(verifyTable(*this, "table", table, getPaddingIdx())))
    return failure();
  return verify::shape(*this, "result", getResult().getType(), rowsShape(indices, table));
}

LogicalResult ScatterAddOp::verify() {
  RankedTensorType result = getResult().getType(), updates = getUpdates().getType();
  if (failed(verifyTable(*this, "result", result, getPaddingIdx())) ||
      failed(verify::shape(*this, "updates", updates, rowsShape(getIndices().getType(), result))) ||
      failed(verify::elementType(*this, "updates", updates, result.getElementType())))
    return failure();
  return getInit() ? verify::sameTensor(*this, "init", getInit().getType(), "result", result) : success();
}

LogicalResult TakeAlongOp::verify() {
  RankedTensorType indices = getIndices().getType();
  if (failed(verifyAlong(*this, getDim(), "indices", indices, "input", getInput().getType())))
    return failure();
  return verify::shape(*this, "result", getResult().getType(), indices.getShape());
}

LogicalResult ScatterAddAlongOp::verify() {
  RankedTensorType result = getResult().getType(), updates = getUpdates().getType();
  if (failed(verifyAlong(*this, getDim(), "indices", getIndices().getType(), "result", result)) ||
      failed(verify::elementType(*this, "updates", updates, result.getElementType())))
    return failure();
  return verify::shape(*this, "updates", updates, getIndices().getType().getShape());
}
