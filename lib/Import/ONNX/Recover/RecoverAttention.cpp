//===- RecoverAttention.cpp - Softmax attention written as its parts ------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Analysis/MaskPredicate.h"
#include "Match.h"

using namespace mlir;
using namespace nd;
using namespace nd::onnx;

namespace {

/// What lies between the scores q k^T and the softmax.
struct ScoreChain {
  DotGeneralOp product;
  double scale = 1, softcap = 0;
  /// Conjuncts: booleans (true = visible) or floats to add, each at the scores' shape.
  SmallVector<Value> masks;
};

/// Follows the chain from the softmax's operand down to a product. What is applied later is seen first: masks, then a
/// soft cap, then scales.
bool followScores(Value value, ScoreChain &chain, unsigned depth = 0) {
  Operation *op = value.getDefiningOp();
  if (!op || depth > 16)
    return false;
  if (auto product = dyn_cast<DotGeneralOp>(op)) {
    chain.product = product;
    return product.getLhsBatch().size() == 2 && product.getLhsContract().size() == 1 &&
           tensorTypeOf(value).getRank() == 4;
  }
  bool scaled = chain.scale != 1;
  if (auto add = dyn_cast<arith::AddFOp>(op); add && !scaled && chain.softcap == 0)
    return eitherOrder(add, [&](Value scores, Value mask) {
      ScoreChain inner = chain;
      inner.masks.push_back(mask);
      if (!followScores(scores, inner, depth + 1))
        return false;
      chain = inner;
      return true;
    });
  if (auto select = dyn_cast<arith::SelectOp>(op); select && !scaled && chain.softcap == 0) {
    std::optional<double> hidden = splatNumber(select.getFalseValue());
    if (!hidden || !isMinusInfinity(*hidden))
      return false;
    chain.masks.push_back(select.getCondition());
    return followScores(select.getTrueValue(), chain, depth + 1);
  }
  if (std::optional<Scaled> factor = matchScaled(value)) {
    // softcap * tanh(s / softcap)
    if (auto tanh = factor->base.getDefiningOp<math::TanhOp>(); tanh && !scaled && chain.softcap == 0) {
      std::optional<Scaled> inner = matchScaled(tanh.getOperand());
      if (!inner || !(factor->factor > 0) || std::abs(inner->factor * factor->factor - 1) > 1e-5)
        return false;
      chain.softcap = factor->factor;
      return followScores(inner->base, chain, depth + 1);
    }
    if (factor->factor == 0)
      return false;
    chain.scale *= factor->factor;
    return followScores(factor->base, chain, depth + 1);
  }
  return false;
}

/// An operand of a product as [B, H, free, contracted], its constant factor taken out.
struct Operand {
  Value value;
  double factor = 1;
};

Operand canonicalOperand(PatternRewriter &rewriter, Location loc, Value value, ArrayRef<int64_t> batch,
                         int64_t contracted, bool takeFactor) {
  Operand result;
  if (takeFactor)
    if (std::optional<Scaled> scaled = matchScaled(value); scaled && scaled->factor != 0) {
      value = scaled->base;
      result.factor = scaled->factor;
    }
  SmallVector<int64_t> order(batch);
  int64_t free = 6 - batch[0] - batch[1] - contracted; // dimensions are 0, 1, 2 and 3
  order.push_back(free);
  order.push_back(contracted);
  // Exporters transpose the keys with batch and heads merged: [B, H, T, D] -> [BH, T, D] -> [BH, D, T] -> [B, H, D, T].
  auto split = value.getDefiningOp<ReshapeOp>();
  auto turned = split ? split.getInput().getDefiningOp<TransposeOp>() : TransposeOp();
  if (turned && turned.getPermutation() == ArrayRef<int64_t>{0, 2, 1}) {
    ArrayRef<int64_t> merged = tensorTypeOf(turned).getShape(), shape = tensorTypeOf(value).getShape();
    if (merged[1] == shape[2] && merged[2] == shape[3]) {
      value = nd::reshape(rewriter, loc, turned.getInput(), {shape[0], shape[1], shape[3], shape[2]});
      for (int64_t &dim : order)
        dim = dim == 2 ? 3 : dim == 3 ? 2 : dim;
    }
  }
  result.value = nd::transpose(rewriter, loc, value, order);
  return result;
}

/// Masks at the scores' shape as one operand that repeats nothing it need not: all booleans, or all floats.
Value combineMasks(PatternRewriter &rewriter, Location loc, ArrayRef<Value> masks, RankedTensorType scores) {
  auto narrow = [&](Value mask) {
    auto broadcast = mask.getDefiningOp<BroadcastOp>();
    if (!broadcast)
      return mask;
    SmallVector<int64_t> shape(4, 1), dims(broadcast.getDims());
    for (int64_t dim : dims)
      shape[dim] = scores.getDimSize(dim);
    Value narrowed = nd::reshape(rewriter, loc, broadcast.getInput(), shape);
    if (llvm::is_contained(dims, 3))
      return narrowed;
    // nd.attention wants the keys' dimension whole.
    SmallVector<int64_t> without(ArrayRef<int64_t>(shape).drop_back());
    shape[3] = scores.getDimSize(3);
    return nd::broadcastTo(rewriter, loc, nd::reshape(rewriter, loc, narrowed, without), shape, {0, 1, 2});
  };
  if (masks.empty())
    return {};
  if (masks.size() == 1)
    return narrow(masks.front());
  bool anyFloat = llvm::any_of(masks, [](Value mask) { return isa<FloatType>(tensorTypeOf(mask).getElementType()); });
  Value result;
  for (Value mask : masks) {
    RankedTensorType type = tensorTypeOf(mask);
    if (anyFloat && !isa<FloatType>(type.getElementType())) {
      auto asFloat = type.clone(scores.getElementType());
      Value zero = nd::splat(rewriter, loc, asFloat.getElementType(), asFloat.getShape(), 0);
      Value hidden = nd::splat(rewriter, loc, asFloat.getElementType(), asFloat.getShape(),
                               -std::numeric_limits<double>::infinity());
      mask = nd::select(rewriter, loc, mask, zero, hidden);
    }
    if (!result)
      result = mask;
    else
      result = anyFloat ? Value(arith::AddFOp::create(rewriter, loc, result, mask))
                        : Value(arith::AndIOp::create(rewriter, loc, result, mask));
  }
  return result;
}

/// softmax(scores) v, the softmax perhaps guarded against rows without visible keys, and dropped out.
struct RecoverAttention : OpRewritePattern<DotGeneralOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(DotGeneralOp op, PatternRewriter &rewriter) const override {
    Value probabilities = op.getLhs();
    double dropout = 0;
    if (auto dropped = probabilities.getDefiningOp<DropoutOp>()) {
      dropout = dropped.getP().convertToDouble();
      probabilities = dropped.getInput();
    }
    // select(p != p, 0, p): exporters' guard; nd.attention yields zeros for such rows.
    if (auto guard = probabilities.getDefiningOp<arith::SelectOp>()) {
      auto isNaN = guard.getCondition().getDefiningOp<arith::CmpFOp>();
      if (isNaN && isNaN.getPredicate() == arith::CmpFPredicate::UNO && isNaN.getLhs() == guard.getFalseValue() &&
          isNaN.getRhs() == guard.getFalseValue() && splatNumber(guard.getTrueValue()) == 0.0)
        probabilities = guard.getFalseValue();
    }
    auto softmax = probabilities.getDefiningOp<SoftmaxOp>();
    if (!softmax || softmax.getDim() != 3 || op.getLhsBatch() != ArrayRef<int64_t>{0, 1} ||
        op.getLhsContract() != ArrayRef<int64_t>{3})
      return rewriter.notifyMatchFailure(op, "not softmax(...) v");
    ScoreChain chain;
    if (!followScores(softmax.getInput(), chain))
      return rewriter.notifyMatchFailure(op, "the softmax is not of scores");

    RankedTensorType scores = tensorTypeOf(softmax.getInput());
    DotGeneralOp product = chain.product;
    Operand query = canonicalOperand(rewriter, op.getLoc(), product.getLhs(), product.getLhsBatch(),
                                     product.getLhsContract().front(), true);
    Operand key = canonicalOperand(rewriter, op.getLoc(), product.getRhs(), product.getRhsBatch(),
                                   product.getRhsContract().front(), true);
    // The value as [B, H, Dv, T], turned to [B, H, T, Dv].
    Operand value =
        canonicalOperand(rewriter, op.getLoc(), op.getRhs(), op.getRhsBatch(), op.getRhsContract().front(), false);
    value.value = nd::transpose(rewriter, op.getLoc(), value.value, {0, 1, 3, 2});
    Value mask = combineMasks(rewriter, op.getLoc(), chain.masks, scores);
    auto attention =
        AttentionOp::create(rewriter, op.getLoc(), tensorTypeOf(op),
                            RankedTensorType::get(scores.getShape().drop_back(), rewriter.getF32Type()), query.value,
                            key.value, value.value, /*positions=*/Value(), /*documents=*/Value(),
                            /*key_padding=*/Value(), mask, llvm::APFloat(chain.scale * query.factor * key.factor),
                            /*causal=*/false, /*window=*/int64_t(0), llvm::APFloat(chain.softcap));
    if (dropout > 0)
      attention->setAttr("nd.attention_dropout", rewriter.getF64FloatAttr(dropout));
    rewriter.replaceOp(op, attention.getResult());
    return success();
  }
};

/// Keys and values whose heads were repeated for groups of queries: nd.attention takes them once.
struct RecoverGroups : OpRewritePattern<AttentionOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(AttentionOp op, PatternRewriter &rewriter) const override {
    Value key = matchRepeatedHeads(op.getKey()), value = matchRepeatedHeads(op.getValue());
    if (!key || !value || tensorTypeOf(key).getDimSize(1) != tensorTypeOf(value).getDimSize(1))
      return rewriter.notifyMatchFailure(op, "keys and values are not repeated");
    rewriter.modifyOpInPlace(op, [&] {
      op.getKeyMutable().assign(key);
      op.getValueMutable().assign(value);
    });
    return success();
  }

private:
  /// [B, Hkv, T, D] -> [B, Hkv, G, T, D] -> [B, Hkv * G, T, D]
  static Value matchRepeatedHeads(Value value) {
    auto merged = value.getDefiningOp<ReshapeOp>();
    auto repeated = merged ? merged.getInput().getDefiningOp<BroadcastOp>() : BroadcastOp();
    if (!repeated)
      return {};
    ArrayRef<int64_t> to = tensorTypeOf(value).getShape(), from = tensorTypeOf(repeated).getShape();
    if (from.size() != 5 || from[0] != to[0] || from[3] != to[2] || from[4] != to[3])
      return {};
    SmallVector<int64_t> dims = {0, 1, 3, 4};
    if (repeated.getDims() == ArrayRef<int64_t>(dims))
      return repeated.getInput();
    // One head for all queries: its dimension may be gone.
    dims = {0, 3, 4};
    if (from[1] != 1 || repeated.getDims() != ArrayRef<int64_t>(dims))
      return {};
    OpBuilder builder(repeated);
    return nd::reshape(builder, repeated.getLoc(), repeated.getInput(), {from[0], 1, from[3], from[4]});
  }
};

} // namespace

void nd::onnx::populateAttentionPatterns(RewritePatternSet &patterns) {
  patterns.add<RecoverAttention, RecoverGroups>(patterns.getContext());
}
