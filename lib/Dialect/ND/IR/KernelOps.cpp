//===- KernelOps.cpp - Kernels and library calls: verifiers ---------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Verify.h"
#include "nd/Dialect/ND/IR/ND.h"

using namespace mlir;
using namespace nd;

#define GET_OP_CLASSES
#include "nd/Dialect/ND/IR/NDKernelOps.cpp.inc"

namespace {

LogicalResult verifyTypes(Operation *op, StringRef inner, TypeRange innerTypes, StringRef outer, TypeRange outerTypes) {
  if (innerTypes.size() != outerTypes.size())
    return op->emitOpError() << "expected as many " << inner << " as " << outer << ", " << outerTypes.size()
                             << ", but found " << innerTypes.size();
  for (auto [index, pair] : llvm::enumerate(llvm::zip_equal(innerTypes, outerTypes)))
    if (std::get<0>(pair) != std::get<1>(pair))
      return op->emitOpError() << "expected the type of " << outer << " in " << inner << ", " << std::get<1>(pair)
                               << " at index " << index << ", but found " << std::get<0>(pair);
  return success();
}

} // namespace

LogicalResult KernelOp::verify() {
  Block &block = getBody().front();
  if (failed(verifyTypes(*this, "block arguments", block.getArgumentTypes(), "operands", getInputs().getTypes())))
    return failure();
  auto yield = block.empty() ? YieldOp() : dyn_cast<YieldOp>(block.back());
  if (!yield)
    return emitOpError() << "expected the region to end in nd.yield";
  return verifyTypes(*this, "yielded values", yield.getOperandTypes(), "results", getResultTypes());
}

LogicalResult GemmOp::verify() {
  RankedTensorType lhs = getLhs().getType(), rhs = getRhs().getType(), result = getResult().getType();
  int64_t rank = lhs.getRank();
  if (rank != 2 && rank != 3)
    return emitOpError() << "expected lhs of rank 2 or 3 but found rank " << rank;
  if (failed(verify::rank(*this, "rhs", rhs, rank, "that of lhs")) ||
      failed(verify::elementType(*this, "rhs", rhs, lhs.getElementType())))
    return failure();
  // The last two dimensions, rows first, as the product reads them.
  auto matrix = [](RankedTensorType type, bool transposed) {
    SmallVector<int64_t, 2> sizes(type.getShape().take_back(2));
    if (transposed)
      std::swap(sizes[0], sizes[1]);
    return sizes;
  };
  SmallVector<int64_t, 2> left = matrix(lhs, getTransposeLhs()), right = matrix(rhs, getTransposeRhs());
  if (left[1] != right[0])
    return emitOpError() << "expected equal contracted sizes but found " << left[1] << " in lhs and " << right[0]
                         << " in rhs";
  SmallVector<int64_t> expected;
  if (rank == 3) {
    if (lhs.getDimSize(0) != rhs.getDimSize(0))
      return emitOpError() << "expected equal batch sizes but found " << lhs.getDimSize(0) << " in lhs and "
                           << rhs.getDimSize(0) << " in rhs";
    expected.push_back(lhs.getDimSize(0));
  }
  expected.append({left[0], right[1]});
  if (failed(verify::shape(*this, "result", result, expected)))
    return failure();
  if (getBias() && failed(verify::shape(*this, "bias", getBias().getType(), right[1])))
    return failure();
  return getAccumulator() ? verify::sameTensor(*this, "accumulator", getAccumulator().getType(), "result", result)
                          : success();
}
