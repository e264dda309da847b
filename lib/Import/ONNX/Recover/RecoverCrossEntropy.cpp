//===- RecoverCrossEntropy.cpp - Cross-entropy written as its parts -------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Match.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace nd;
using namespace nd::onnx;

namespace {

/// What `value` repeats along dimension `dim` of `shape`.
Value matchRepeated(Value value, int64_t dim, int64_t rank) {
  auto broadcast = value.getDefiningOp<BroadcastOp>();
  if (!broadcast)
    return {};
  SmallVector<int64_t> others;
  for (int64_t other = 0; other < rank; ++other)
    if (other != dim)
      others.push_back(other);
  return broadcast.getDims() == ArrayRef<int64_t>(others) ? broadcast.getInput() : Value();
}

bool isReduction(Value value, ReductionKind kind, Value of, int64_t dim) {
  auto reduce = value ? value.getDefiningOp<ReduceOp>() : ReduceOp();
  return reduce && reduce.getKind() == kind && reduce.getInput() == of && reduce.getDims() == ArrayRef<int64_t>{dim};
}

/// The x of x - max(x) - log(sum(exp(x - max(x)))) over `dim`.
Value matchLogSoftmax(Value value, int64_t dim) {
  int64_t rank = tensorTypeOf(value).getRank();
  auto outer = value.getDefiningOp<arith::SubFOp>();
  auto shifted = outer ? outer.getLhs().getDefiningOp<arith::SubFOp>() : arith::SubFOp();
  if (!shifted || !isReduction(matchRepeated(shifted.getRhs(), dim, rank), ReductionKind::max, shifted.getLhs(), dim))
    return {};
  Value repeated = matchRepeated(outer.getRhs(), dim, rank);
  auto log = repeated ? repeated.getDefiningOp<math::LogOp>() : math::LogOp();
  auto sum = log ? log.getOperand().getDefiningOp<ReduceOp>() : ReduceOp();
  auto exp = sum ? sum.getInput().getDefiningOp<math::ExpOp>() : math::ExpOp();
  if (!exp || exp.getOperand() != shifted.getResult() || !isReduction(sum, ReductionKind::sum, exp, dim))
    return {};
  return shifted.getLhs();
}

/// log_softmax(x)[label] is minus the cross-entropy of the label. No label is ignored here: -1 never occurs.
struct RecoverPick : OpRewritePattern<TakeAlongOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(TakeAlongOp op, PatternRewriter &rewriter) const override {
    RankedTensorType type = tensorTypeOf(op.getInput());
    int64_t last = type.getRank() - 1;
    if (int64_t(op.getDim()) != last || tensorTypeOf(op.getIndices()).getShape().back() != 1)
      return rewriter.notifyMatchFailure(op, "not one element of the last dimension");
    // Rows may have been merged between the two: the classes are the last dimension of both.
    Value logs = op.getInput();
    if (auto merged = logs.getDefiningOp<ReshapeOp>()) {
      ArrayRef<int64_t> shape = merged.getInput().getType().getShape();
      if (!shape.empty() && shape.back() == type.getShape().back())
        logs = merged.getInput();
    }
    Value scores = matchLogSoftmax(logs, tensorTypeOf(logs).getRank() - 1);
    if (!scores)
      return rewriter.notifyMatchFailure(op, "not of a log-softmax");
    int64_t classes = type.getShape().back(), rows = type.getNumElements() / classes;
    Value logits = nd::reshape(rewriter, op.getLoc(), scores, {rows, classes});
    Value labels = nd::reshape(rewriter, op.getLoc(), op.getIndices(), {rows});
    auto lossType = RankedTensorType::get({rows}, rewriter.getF32Type());
    auto loss = SoftmaxCrossEntropyOp::create(rewriter, op.getLoc(), lossType, lossType, logits, labels, int64_t(-1));
    Value picked = arith::NegFOp::create(rewriter, op.getLoc(), loss.getLosses());
    picked = nd::convertFloat(rewriter, op.getLoc(), picked, type.getElementType());
    rewriter.replaceOp(op, nd::reshape(rewriter, op.getLoc(), picked, tensorTypeOf(op).getShape()));
    return success();
  }
};

/// select(label != ignored, loss(select(label != ignored, label, 0)), 0) is the loss with that index ignored.
struct RecoverIgnored : OpRewritePattern<arith::SelectOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::SelectOp op, PatternRewriter &rewriter) const override {
    auto loss = op.getTrueValue().getDefiningOp<SoftmaxCrossEntropyOp>();
    if (!loss || op.getTrueValue() != loss.getLosses() || splatNumber(op.getFalseValue()) != 0.0)
      return rewriter.notifyMatchFailure(op, "not a selected loss");
    auto condition = op.getCondition().getDefiningOp<arith::CmpIOp>();
    auto safe = loss.getLabels().getDefiningOp<arith::SelectOp>();
    DenseElementsAttr ignored;
    if (!condition || condition.getPredicate() != arith::CmpIPredicate::ne || !safe ||
        safe.getCondition() != op.getCondition() || safe.getTrueValue() != condition.getLhs() ||
        !nd::isZeroSplat(safe.getFalseValue()) || !matchPattern(condition.getRhs(), m_Constant(&ignored)) ||
        !ignored.isSplat())
      return rewriter.notifyMatchFailure(op, "not selected by the label's own validity");
    auto result = SoftmaxCrossEntropyOp::create(rewriter, op.getLoc(), loss.getLosses().getType(),
                                                loss.getLse().getType(), loss.getLogits(), condition.getLhs(),
                                                ignored.getSplatValue<APInt>().getSExtValue());
    rewriter.replaceOp(op, result.getLosses());
    return success();
  }
};

} // namespace

void nd::onnx::populateCrossEntropyPatterns(RewritePatternSet &patterns) {
  patterns.add<RecoverPick, RecoverIgnored>(patterns.getContext());
}
