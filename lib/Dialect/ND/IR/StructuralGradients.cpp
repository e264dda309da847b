//===- StructuralGradients.cpp - Data movement: gradient rules ------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Every operation here is linear: its gradient is its transpose, and depends on the operand's shape only.
//
//===----------------------------------------------------------------------===//

#include "nd/Dialect/ND/IR/Builders.h"
#include "nd/Dialect/ND/IR/GradientType.h"

using namespace mlir;
using namespace nd;

using Gradients = FailureOr<SmallVector<Value>>;

/// f32 for floats of 16 bits.
static Type sumElementType(Type elementType) {
  bool isShort = elementType.isF16() || elementType.isBF16();
  return isShort ? Float32Type::get(elementType.getContext()) : elementType;
}

Gradients BroadcastOp::buildGradient(OpBuilder &builder, ArrayRef<Value> resultGrads, ArrayRef<bool> wanted) {
  SmallVector<int64_t> added = llvm::filter_to_vector(sequence(getType().getRank()),
                                                      [&](int64_t dim) { return !llvm::is_contained(getDims(), dim); });
  // Sums are in f32, and rounded once.
  Value grad = convertFloat(builder, getLoc(), resultGrads.front(), sumElementType(getType().getElementType()));
  Value sum = reduceSum(builder, getLoc(), grad, added);
  return SmallVector<Value>{convertFloat(builder, getLoc(), sum, gradientElementType(getInput()))};
}

Gradients ReshapeOp::buildGradient(OpBuilder &builder, ArrayRef<Value> resultGrads, ArrayRef<bool> wanted) {
  return SmallVector<Value>{reshape(builder, getLoc(), resultGrads.front(), getInput().getType().getShape())};
}

Gradients TransposeOp::buildGradient(OpBuilder &builder, ArrayRef<Value> resultGrads, ArrayRef<bool> wanted) {
  return SmallVector<Value>{transpose(builder, getLoc(), resultGrads.front(), invertPermutation(getPermutation()))};
}

Gradients SliceOp::buildGradient(OpBuilder &builder, ArrayRef<Value> resultGrads, ArrayRef<bool> wanted) {
  RankedTensorType inputType = getInput().getType();
  SmallVector<int64_t> high, interior;
  for (auto [size, extent, start, stride] :
       llvm::zip_equal(getType().getShape(), inputType.getShape(), getStarts(), getStrides())) {
    // Without elements there is nothing to put back: all padding is before.
    int64_t end = size == 0 ? start : start + (size - 1) * stride + 1;
    high.push_back(extent - end);
    interior.push_back(stride - 1);
  }
  Value grad = resultGrads.front();
  Value zero = scalar(builder, getLoc(), tensorTypeOf(grad).getElementType(), 0.0);
  return SmallVector<Value>{PadOp::create(builder, getLoc(), withShape(tensorTypeOf(grad), inputType.getShape()), grad,
                                          zero, getStarts(), high, interior)};
}

Gradients PadOp::buildGradient(OpBuilder &builder, ArrayRef<Value> resultGrads, ArrayRef<bool> wanted) {
  Value grad = resultGrads.front(), inputGrad;
  SmallVector<int64_t> strides = llvm::map_to_vector(getInterior(), [](int64_t amount) { return amount + 1; });
  inputGrad = SliceOp::create(builder, getLoc(), withShape(tensorTypeOf(grad), getInput().getType().getShape()), grad,
                              getLow(), strides);
  SmallVector<Value> result(2);
  if (wanted[0])
    result[0] = inputGrad;
  // The value stands wherever the input does not.
  if (wanted[1])
    result[1] = arith::SubFOp::create(builder, getLoc(), reduceSumAll(builder, getLoc(), grad),
                                      reduceSumAll(builder, getLoc(), inputGrad));
  return result;
}

Gradients ConcatOp::buildGradient(OpBuilder &builder, ArrayRef<Value> resultGrads, ArrayRef<bool> wanted) {
  SmallVector<Value> result;
  int64_t dim = getDim(), start = 0;
  for (auto [input, isWanted] : llvm::zip_equal(getInputs(), wanted)) {
    int64_t size = tensorTypeOf(input).getDimSize(dim);
    result.push_back(isWanted ? slice(builder, getLoc(), resultGrads.front(), dim, start, size) : Value());
    start += size;
  }
  return result;
}
