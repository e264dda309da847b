//===- Loss.cpp - Cross-entropy and dropout -------------------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "NodeConversion.h"

using namespace mlir;
using namespace nd;
using namespace nd::onnx;

namespace {

/// Scores [N, C, d...] as rows [N * d..., C], and labels [N, d...] as [N * d...].
struct Rows {
  Value scores, labels;
};

FailureOr<Rows> rowsOf(NodeConversion &node) {
  if (failed(node.requireOperands(2)))
    return failure();
  RankedTensorType type = node.type(0), labelType = node.type(1);
  SmallVector<int64_t> expected(type.getShape());
  if (type.getRank() >= 2)
    expected.erase(expected.begin() + 1);
  if (type.getRank() < 2 || ArrayRef<int64_t>(expected) != labelType.getShape() ||
      !isa<FloatType>(type.getElementType()) || !labelType.getElementType().isInteger(64))
    return node.error() << "its scores " << type << " and labels " << labelType << " do not fit";
  if (node.has(2))
    return node.error() << "weights of classes are not supported; weight the loss in the model";
  SmallVector<int64_t> order = nd::sequence(type.getRank());
  std::rotate(order.begin() + 1, order.begin() + 2, order.end());
  int64_t classes = type.getDimSize(1);
  int64_t count = classes == 0 ? 0 : type.getNumElements() / classes;
  return Rows{node.reshape(node.transpose(node.operand(0), order), {count, classes}),
              node.reshape(node.operand(1), {count})};
}

/// The losses [N * d...] reduced as the node says: their mean is over the labels that are not ignored.
LogicalResult finish(NodeConversion &node, Value losses, Value labels, int64_t ignoreIndex, ArrayRef<Value> others) {
  StringRef reduction = node.stringAttr("reduction", "mean");
  Value result;
  if (reduction == "none") {
    result = node.reshape(losses, node.type(1).getShape());
  } else if (reduction == "sum" || reduction == "mean") {
    result = node.reduce(ReductionKind::sum, losses, {0}, /*keep=*/false);
    if (reduction == "mean") {
      Value counts = node.compare(arith::CmpIPredicate::ne, labels, node.integer(labels, ignoreIndex));
      Value count =
          node.reduce(ReductionKind::sum, node.cast(counts, tensorTypeOf(losses).getElementType()), {0}, false);
      result = node.create<arith::DivFOp>(result, count);
    }
  } else {
    return node.error() << "reduction \"" << reduction << "\" is not known; mean, sum and none are";
  }
  SmallVector<Value> results = {result};
  llvm::append_range(results, others);
  return node.replace(results);
}

LogicalResult convertSoftmaxCrossEntropyLoss(NodeConversion &node) {
  FailureOr<Rows> rows = rowsOf(node);
  if (failed(rows))
    return failure();
  // Without an ignore_index no label is ignored: a number that is no label stands for it.
  int64_t ignoreIndex = node.intAttr("ignore_index", -100);
  auto type = RankedTensorType::get(node.type(1).getNumElements(), node.builder().getF32Type());
  auto loss =
      SoftmaxCrossEntropyOp::create(node.builder(), node.loc(), type, type, rows->scores, rows->labels, ignoreIndex);
  SmallVector<Value> others;
  if (node.numResults() > 1 && !node.getNode().getOutputs()[1].use_empty())
    others.push_back(logSoftmax(node, node.operand(0), 1));
  return finish(node, loss.getLosses(), rows->labels, ignoreIndex, others);
}

/// Scores are log-probabilities already: minus the one of the label, 0 where that is ignored.
LogicalResult convertNegativeLogLikelihoodLoss(NodeConversion &node) {
  FailureOr<Rows> rows = rowsOf(node);
  if (failed(rows))
    return failure();
  int64_t ignoreIndex = node.intAttr("ignore_index", -100), count = node.type(1).getNumElements();
  Value isCounted = node.compare(arith::CmpIPredicate::ne, rows->labels, node.integer(rows->labels, ignoreIndex));
  Value safe = node.select(isCounted, rows->labels, node.integer(rows->labels, 0));
  Value picked = TakeAlongOp::create(node.builder(), node.loc(), node.type(0).clone({count, 1}), rows->scores,
                                     node.reshape(safe, {count, 1}), int64_t(1));
  Value losses = node.create<arith::NegFOp>(node.reshape(picked, {count}));
  return finish(node, node.select(isCounted, losses, node.number(losses, 0)), rows->labels, ignoreIndex, {});
}

/// Dropout stays an operation when it is one: p > 0 and training. Its ratio is an operand from opset 12 on.
LogicalResult convertDropout(NodeConversion &node) {
  if (failed(node.requireOperands(1)))
    return failure();
  double p = node.floatAttr("ratio", 0.5);
  if (node.version() >= 12) {
    FailureOr<double> ratio = node.has(1) ? node.constantFloat(1, "ratio") : FailureOr<double>(0.5);
    FailureOr<int64_t> training = node.has(2) ? node.constantInt(2, "training_mode") : FailureOr<int64_t>(0);
    if (failed(ratio) || failed(training))
      return failure();
    p = *training ? *ratio : 0;
  }
  if (!(p >= 0 && p < 1))
    return node.error() << "drops with probability " << p << ", which is outside [0, 1)";
  Value x = node.operand(0);
  if (p > 0)
    x = DropoutOp::create(node.builder(), node.loc(), x, node.builder().getF64FloatAttr(p));
  return node.replace({x});
}

} // namespace

void nd::onnx::populateLoss(OpTable &table) {
  table.onOp("SoftmaxCrossEntropyLoss", 12, convertSoftmaxCrossEntropyLoss);
  table.onOp("NegativeLogLikelihoodLoss", 12, convertNegativeLogLikelihoodLoss);
  table.onOp("Dropout", 7, convertDropout);
}
