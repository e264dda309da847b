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

/// Shapes and options that attention and its gradient share.
template <typename AttentionLike> LogicalResult verifyAttention(AttentionLike op) {
  RankedTensorType query = op.getQuery().getType(), key = op.getKey().getType(), value = op.getValue().getType();
  if (failed(verify::rank(op, "query", query, 4, "batch, heads, sequence, width")) ||
      failed(verify::rank(op, "key", key, 4, "batch, heads, sequence, width")) ||
      failed(verify::rank(op, "value", value, 4, "batch, heads, sequence, width")))
    return failure();
  int64_t batch = query.getDimSize(0), heads = query.getDimSize(1), queries = query.getDimSize(2);
  int64_t keyHeads = key.getDimSize(1), keys = key.getDimSize(2), valueWidth = value.getDimSize(3);
  if (failed(verify::shape(op, "key", key, {batch, keyHeads, keys, query.getDimSize(3)})) ||
      failed(verify::shape(op, "value", value, {batch, keyHeads, keys, valueWidth})) ||
      failed(verify::elementType(op, "key", key, query.getElementType())) ||
      failed(verify::elementType(op, "value", value, query.getElementType())))
    return failure();
  if (keyHeads == 0 || heads % keyHeads != 0)
    return op.emitOpError() << "expected the " << heads << " heads of query to be a multiple of the " << keyHeads
                            << " heads of key and value";
  SmallVector<int64_t> result = {batch, heads, queries, valueWidth};
  if (failed(verify::shape(op, "result", op.getResult().getType(), result)) ||
      failed(verify::elementType(op, "result", op.getResult().getType(), query.getElementType())) ||
      failed(verifyF32(op, "lse", op.getLse().getType(), {batch, heads, queries})))
    return failure();

  for (auto [name, ids] : {std::pair("positions", op.getPositions()), std::pair("documents", op.getDocuments())}) {
    if (!ids)
      continue;
    if (queries != keys)
      return op.emitOpError() << "expected as many queries as keys when " << name << " are given but found " << queries
                              << " and " << keys;
    if (failed(verify::shape(op, name, ids.getType(), {batch, queries})))
      return failure();
  }
  if (op.getKeyPadding() && failed(verify::shape(op, "key_padding", op.getKeyPadding().getType(), {batch, keys})))
    return failure();
  if (op.getMask()) {
    RankedTensorType mask = op.getMask().getType();
    if (failed(verify::rank(op, "mask", mask, 4, "batch, heads, queries, keys")))
      return failure();
    SmallVector<int64_t> full = {batch, heads, queries, keys};
    for (auto [dim, size] : llvm::enumerate(full))
      if (mask.getDimSize(dim) != size && (mask.getDimSize(dim) != 1 || dim == 3))
        return op.emitOpError() << "expected mask of size " << size << (dim == 3 ? "" : " or 1") << " in dimension "
                                << dim << " but found " << mask.getDimSize(dim);
    if (!isa<FloatType>(mask.getElementType()) && !mask.getElementType().isInteger(1))
      return op.emitOpError() << "expected mask of floats (added) or booleans (true = visible) but found "
                              << mask.getElementType();
  }
  if (failed(verify::inRange(op, "scale", op.getScale().convertToDouble(), -kInfinity, kInfinity)) ||
      failed(verify::inRange(op, "softcap", op.getSoftcap().convertToDouble(), 0, kInfinity)))
    return failure();
  if (int64_t window = op.getWindow(); window < 0)
    return op.emitOpError() << "expected window to be positive, or 0 for none, but found " << window;
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

LogicalResult AttentionOp::verify() { return verifyAttention(*this); }

LogicalResult AttentionGradOp::verify() {
  if (failed(verifyAttention(*this)))
    return failure();
  if (failed(verify::sameTensor(*this, "result_grad", getResultGrad().getType(), "result", getResult().getType())) ||
      failed(verify::sameTensor(*this, "query_grad", getQueryGrad().getType(), "query", getQuery().getType())) ||
      failed(verify::sameTensor(*this, "key_grad", getKeyGrad().getType(), "key", getKey().getType())))
    return failure();
  return verify::sameTensor(*this, "value_grad", getValueGrad().getType(), "value", getValue().getType());
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
