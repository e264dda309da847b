//===- RecoverRmsNorm.cpp - RMSNorm written as its parts ------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Match.h"

using namespace mlir;
using namespace nd;
using namespace nd::onnx;

namespace {

/// The x of mean(x * x) over the last dimension, in any shape with dimensions of size 1.
Value matchMeanOfSquares(Value value) {
  std::optional<Scaled> mean = matchScaled(lookThroughUnitReshapes(value));
  if (!mean)
    return {};
  auto sum = lookThroughUnitReshapes(mean->base).getDefiningOp<ReduceOp>();
  if (!sum || sum.getKind() != ReductionKind::sum)
    return {};
  RankedTensorType type = sum.getInput().getType();
  int64_t last = type.getRank() - 1;
  auto square = sum.getInput().getDefiningOp<arith::MulFOp>();
  if (!square || square.getLhs() != square.getRhs() || sum.getDims() != ArrayRef<int64_t>{last})
    return {};
  // The factor is 1 / width as a double or as its f32 rounding.
  double width = static_cast<double>(type.getDimSize(last));
  return std::abs(mean->factor * width - 1) < 1e-6 ? square.getLhs() : Value();
}

struct RootMeanSquare {
  Value x;
  double eps;
};

/// sqrt(mean(x * x) + eps)
std::optional<RootMeanSquare> matchRoot(Value value) {
  auto sqrt = lookThroughUnitReshapes(value).getDefiningOp<math::SqrtOp>();
  if (!sqrt)
    return std::nullopt;
  auto add = lookThroughUnitReshapes(sqrt.getOperand()).getDefiningOp<arith::AddFOp>();
  std::optional<RootMeanSquare> result;
  if (add)
    eitherOrder(add, [&](Value mean, Value eps) {
      std::optional<double> number = splatNumber(eps);
      Value x = number ? matchMeanOfSquares(mean) : Value();
      if (x)
        result = RootMeanSquare{x, *number};
      return result.has_value();
    });
  return result;
}

/// The value that a broadcast over the last dimension of `type` repeats.
Value matchRowBroadcast(Value value, RankedTensorType type) {
  auto broadcast = value.getDefiningOp<BroadcastOp>();
  if (!broadcast || value.getType() != type || llvm::is_contained(broadcast.getDims(), type.getRank() - 1))
    return {};
  // All other dimensions of size above 1 must be the operand's own.
  for (int64_t dim = 0; dim < type.getRank() - 1; ++dim)
    if (type.getDimSize(dim) != 1 && !llvm::is_contained(broadcast.getDims(), dim))
      return {};
  return broadcast.getInput();
}

/// x * (1 / root), or x / root.
template <typename Op> struct RecoverRmsNorm : OpRewritePattern<Op> {
  using OpRewritePattern<Op>::OpRewritePattern;

  LogicalResult matchAndRewrite(Op op, PatternRewriter &rewriter) const override {
    auto type = dyn_cast<RankedTensorType>(op.getType());
    if (!type || type.getRank() < 1)
      return failure();
    std::optional<RootMeanSquare> root;
    auto match = [&](Value x, Value factor) {
      Value rows = matchRowBroadcast(factor, type);
      if (!rows)
        return false;
      if (std::is_same_v<Op, arith::DivFOp>) {
        root = matchRoot(rows);
      } else {
        rows = lookThroughUnitReshapes(rows);
        if (auto reciprocal = rows.getDefiningOp<arith::DivFOp>();
            reciprocal && splatNumber(reciprocal.getLhs()) == 1.0)
          root = matchRoot(reciprocal.getRhs());
      }
      return root && root->x == x;
    };
    bool matched = std::is_same_v<Op, arith::DivFOp> ? match(op.getLhs(), op.getRhs()) : eitherOrder(op, match);
    if (!matched)
      return rewriter.notifyMatchFailure(op, "not x / sqrt(mean(x * x) + eps)");
    auto statistics = RankedTensorType::get(type.getShape().drop_back(), rewriter.getF32Type());
    auto norm = RmsNormOp::create(rewriter, op.getLoc(), type, statistics, root->x, /*weight=*/Value(),
                                  llvm::APFloat(root->eps));
    rewriter.replaceOp(op, norm.getResult());
    return success();
  }
};

/// rms_norm(x) * weight, the weight any vector (also 1 + w).
struct RecoverWeight : OpRewritePattern<arith::MulFOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::MulFOp op, PatternRewriter &rewriter) const override {
    RmsNormOp norm;
    Value weight;
    bool matched = eitherOrder(op, [&](Value normed, Value factor) {
      norm = normed.getDefiningOp<RmsNormOp>();
      auto broadcast = factor.getDefiningOp<BroadcastOp>();
      if (!norm || norm.getWeight() || normed != norm.getResult() || !broadcast)
        return false;
      weight = broadcast.getInput();
      return broadcast.getDims() == ArrayRef<int64_t>{tensorTypeOf(factor).getRank() - 1};
    });
    if (!matched)
      return rewriter.notifyMatchFailure(op, "not a weighted rms_norm");
    auto weighted = RmsNormOp::create(rewriter, op.getLoc(), norm.getResult().getType(), norm.getRstd().getType(),
                                      norm.getInput(), weight, norm.getEps());
    rewriter.replaceOp(op, weighted.getResult());
    return success();
  }
};

} // namespace

void nd::onnx::populateRmsNormPatterns(RewritePatternSet &patterns) {
  patterns.add<RecoverRmsNorm<arith::MulFOp>, RecoverRmsNorm<arith::DivFOp>, RecoverWeight>(patterns.getContext());
}
