//===- BuildBackward.cpp - Append gradients to a model --------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Backward.h"
#include "StepFunction.h"
#include "nd/Dialect/ND/IR/Builders.h"
#include "nd/Dialect/ND/IR/Names.h"
#include "nd/Training/Passes.h"

namespace nd {
#define GEN_PASS_DEF_BUILDBACKWARD
#include "nd/Training/Passes.h.inc"
} // namespace nd

using namespace mlir;
using namespace nd;

namespace {

FailureOr<StepLoss> getLoss(func::FuncOp function) {
  std::optional<unsigned> sum = findResultOfKind(function, names::kind::kLossSum);
  std::optional<unsigned> count = findResultOfKind(function, names::kind::kLossCount);
  if (!sum || !count)
    return function.emitOpError() << "must return results of kinds 'loss_sum' and 'loss_count'; run nd-add-loss first";
  StepLoss loss{getReturn(function).getOperand(*sum), getReturn(function).getOperand(*count)};
  for (Value value : {loss.sum, loss.count})
    if (auto type = dyn_cast<RankedTensorType>(value.getType()); !type || type.getRank() != 0)
      return function.emitOpError() << "loss_sum and loss_count must be 0-d tensors, got " << value.getType();
  return loss;
}

struct Mean {
  Value loss;   ///< sum / count in f32, or the sum where the count is 0
  Value seed;   ///< the gradient of `loss` with respect to the sum, in the sum's type
  Value tokens; ///< the count in i64
};

/// The number of microbatches whose gradients are summed; nothing where the inputs are one batch.
std::optional<int64_t> getMicrobatches(func::FuncOp function) {
  for (auto microbatch : function.getOps<MicrobatchOp>())
    return microbatch.getInput().getType().getDimSize(0);
  return std::nullopt;
}

/// The sum over all microbatches, in at least f32.
Value accumulate(OpBuilder &builder, Location loc, Value value, int64_t count) {
  if (getElementTypeOrSelf(value).getIntOrFloatBitWidth() < 32)
    value = convertFloat(builder, loc, value, builder.getF32Type());
  return AccumulateOp::create(builder, loc, value, count);
}

/// A count of zero divides by one instead: the sum is zero then, and so is every gradient.
Mean buildMean(OpBuilder &builder, Location loc, const StepLoss &loss, std::optional<int64_t> microbatches) {
  auto f32 = RankedTensorType::get({}, builder.getF32Type()), i64 = RankedTensorType::get({}, builder.getI64Type());
  Value tokens = loss.count, divisor;
  if (isa<FloatType>(tensorTypeOf(tokens).getElementType())) {
    Value count = convertFloat(builder, loc, loss.count, builder.getF32Type());
    Value positive =
        arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::OGT, count, splatLike(builder, loc, count, 0.0));
    divisor = select(builder, loc, positive, count, splatLike(builder, loc, count, 1.0));
    // A weighted count may be a fraction; any weight at all makes it a step.
    tokens = arith::FPToSIOp::create(builder, loc, i64, math::CeilOp::create(builder, loc, count));
  } else {
    if (tokens.getType() != i64)
      tokens = arith::ExtSIOp::create(builder, loc, i64, tokens);
    Value atLeastOne = arith::MaxSIOp::create(builder, loc, tokens, intSplatLike(builder, loc, tokens, 1));
    divisor = arith::SIToFPOp::create(builder, loc, f32, atLeastOne);
  }
  Value sum = convertFloat(builder, loc, loss.sum, builder.getF32Type());
  if (microbatches)
    sum = accumulate(builder, loc, sum, *microbatches);
  Value mean = arith::DivFOp::create(builder, loc, sum, divisor);
  Value seed = arith::DivFOp::create(builder, loc, splatLike(builder, loc, divisor, 1.0), divisor);
  return {mean, convertFloat(builder, loc, seed, tensorTypeOf(loss.sum).getElementType()), tokens};
}

FailureOr<SmallVector<unsigned>> getTrainableWeights(func::FuncOp function) {
  SmallVector<unsigned> indices;
  for (unsigned index : llvm::seq(function.getNumArguments())) {
    if (!names::isTrainableWeight(function, index) ||
        !isa<FloatType>(getElementTypeOrSelf(function.getArgument(index))))
      continue;
    if (names::argName(function, index).empty())
      return function.emitOpError() << "argument " << index << " is a trainable weight without a name (nd.name)";
    indices.push_back(index);
  }
  if (indices.empty())
    return function.emitOpError()
           << "has no trainable weight (an argument of kind 'weight' without nd.trainable = false)";
  return indices;
}

struct BuildBackward : nd::impl::BuildBackwardBase<BuildBackward> {
  void runOnOperation() override {
    FailureOr<func::FuncOp> function = getForward(getOperation());
    if (failed(function) || failed(build(*function)))
      signalPassFailure();
  }

  /// Attention has gradients for queries, keys and values. Where its mask is trained too (a table of relative
  /// positions), its definition takes its place.
  static LogicalResult decomposeTrainedMasks(func::FuncOp function, ArrayRef<Value> weights) {
    Backward backward(function.getBody().front(), weights);
    SmallVector<AttentionOp> trained;
    for (auto attention : function.getOps<AttentionOp>())
      if (attention.getMask() && backward.isActive(attention.getMask()))
        trained.push_back(attention);
    for (AttentionOp attention : trained) {
      OpBuilder builder(attention);
      FailureOr<SmallVector<Value>> defined = attention.decompose(builder);
      if (failed(defined))
        return failure();
      attention->replaceAllUsesWith(*defined);
      attention->erase();
    }
    return success();
  }

  static LogicalResult build(func::FuncOp function) {
    FailureOr<StepLoss> loss = getLoss(function);
    if (failed(loss))
      return failure();
    FailureOr<SmallVector<unsigned>> indices = getTrainableWeights(function);
    if (failed(indices))
      return failure();
    SmallVector<Value> weights =
        llvm::map_to_vector(*indices, [&](unsigned index) { return Value(function.getArgument(index)); });
    if (failed(decomposeTrainedMasks(function, weights)))
      return failure();
    Backward backward(function.getBody().front(), weights);
    if (!backward.isActive(loss->sum))
      return function.emitOpError() << "has a loss that depends on no trainable weight";

    OpBuilder builder(getReturn(function));
    Location loc = NameLoc::get(builder.getStringAttr("loss"), function.getLoc());
    std::optional<int64_t> microbatches = getMicrobatches(function);
    Mean mean = buildMean(builder, loc, *loss, microbatches);
    if (failed(backward.run(builder, loss->sum, mean.seed)))
      return failure();
    SmallVector<StepResult> results = {{mean.loss, names::kind::kMetric, names::name::kLoss},
                                       {mean.tokens, names::kind::kMetric, names::name::kTokens}};
    for (auto [index, weight] : llvm::zip_equal(*indices, weights))
      if (Value gradient = backward.getGradient(weight)) {
        if (microbatches)
          gradient = accumulate(builder, weight.getLoc(), gradient, *microbatches);
        results.push_back({gradient, names::kind::kGradient, names::argName(function, index)});
      }
    setResults(function, results);
    return success();
  }
};

} // namespace
