//===- CompositeOps.cpp - Composites of neural networks: verifiers --------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Verify.h"
#include "nd/Dialect/ND/IR/ND.h"
#include <limits>

using namespace mlir;
using namespace nd;

#define GET_OP_CLASSES
#include "nd/Dialect/ND/IR/NDCompositeOps.cpp.inc"

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

LogicalResult verifyF32(Operation *op, StringRef name, Type type, ArrayRef<int64_t> shape) {
  if (failed(verify::shape(op, name, type, shape)))
    return failure();
  return verify::elementType(op, name, type, Float32Type::get(op->getContext()));
}

/// What layer_norm and rms_norm share: vectors of the last dimension, statistics without it.
LogicalResult verifyNorm(Operation *op, RankedTensorType input, ValueRange vectors, ValueRange statistics,
                         APFloat eps) {
  if (input.getRank() == 0)
    return op->emitOpError() << "expected input of rank 1 or more but found rank 0";
  if (failed(verify::inRange(op, "eps", eps.convertToDouble(), 0, kInfinity)))
    return failure();
  for (auto [index, vector] : llvm::enumerate(vectors))
    if (vector && failed(verify::shape(op, index == 0 ? "weight" : "bias", vector.getType(), input.getShape().back())))
      return failure();
  for (Value statistic : statistics)
    if (failed(verifyF32(op, statistics.size() == 2 ? "statistics" : "rstd", statistic.getType(),
                         input.getShape().drop_back())))
      return failure();
  return success();
}

/// Rows of classes, and what there is one of for each row.
template <typename CrossEntropyLike>
LogicalResult verifyCrossEntropy(CrossEntropyLike op, StringRef perRowName, Type perRow) {
  RankedTensorType logits = op.getLogits().getType();
  if (logits.getRank() < 2)
    return op.emitOpError() << "expected logits of rank 2 or more (rows, classes) but found rank " << logits.getRank();
  ArrayRef<int64_t> rows = logits.getShape().drop_back();
  if (failed(verify::shape(op, "labels", op.getLabels().getType(), rows)))
    return failure();
  return verifyF32(op, perRowName, perRow, rows);
}

} // namespace

LogicalResult SoftmaxOp::verify() { return verify::dimInRange(*this, "dim", getDim(), getInput().getType().getRank()); }

LogicalResult LayerNormOp::verify() {
  return verifyNorm(*this, getInput().getType(), {getWeight(), getBias()}, {getMean(), getRstd()}, getEps());
}

LogicalResult RmsNormOp::verify() {
  return verifyNorm(*this, getInput().getType(), {getWeight()}, {getRstd()}, getEps());
}

LogicalResult RopeOp::verify() {
  RankedTensorType input = getInput().getType(), cos = getCos().getType();
  if (failed(verify::rank(*this, "input", input, 4, "batch, heads, sequence, width")) ||
      failed(verify::rank(*this, "cos and sin", cos, 3, "batch, sequence, half the rotated width")) ||
      failed(verify::shape(*this, "cos and sin", cos, {input.getDimSize(0), input.getDimSize(2), cos.getDimSize(2)})))
    return failure();
  if (cos.getDimSize(2) > input.getDimSize(3) / 2)
    return emitOpError() << "expected at most " << input.getDimSize(3) / 2
                         << " angles, half the operand's last dimension, but found " << cos.getDimSize(2);
  return success();
}

LogicalResult SoftmaxCrossEntropyOp::verify() {
  return verifyCrossEntropy(*this, "losses and lse", getLosses().getType());
}

LogicalResult SoftmaxCrossEntropyGradOp::verify() {
  return verifyCrossEntropy(*this, "lse and losses_grad", getLse().getType());
}

LogicalResult DropoutOp::verify() { return verify::inRange(*this, "p", getP().convertToDouble(), 0, 1); }

OpFoldResult DropoutOp::fold(FoldAdaptor) {
  if (getP().isZero())
    return getInput();
  return {};
}
