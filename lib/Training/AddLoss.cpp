//===- AddLoss.cpp - Append the loss to a model ---------------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "StepFunction.h"
#include "nd/Dialect/ND/IR/Builders.h"
#include "nd/Dialect/ND/IR/Names.h"
#include "nd/Training/Passes.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/Support/Format.h"

namespace nd {
#define GEN_PASS_DEF_ADDLOSS
#include "nd/Training/Passes.h.inc"
} // namespace nd

using namespace mlir;
using namespace nd;

namespace {

constexpr int64_t kDefaultIgnoreIndex = -100;
constexpr StringLiteral kAttentionDropout = "nd.attention_dropout";

std::string toText(double number) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%g", number);
  return text;
}

/// Refuses what a training step would have to do at random.
LogicalResult refuseDropout(func::FuncOp function) {
  WalkResult result = function.walk([](Operation *op) {
    double probability = 0.0;
    StringRef what = "dropout";
    if (auto dropout = dyn_cast<DropoutOp>(op)) {
      probability = dropout.getP().convertToDouble();
    } else if (auto attribute = op->getAttrOfType<FloatAttr>(kAttentionDropout)) {
      probability = attribute.getValueAsDouble();
      what = "attention dropout";
    }
    if (probability == 0.0)
      return WalkResult::advance();
    op->emitOpError() << "training with " << what << " (p = " << toText(probability)
                      << ") is not supported; export the model with --dropout=off";
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

/// The argument `labels`, added unless the model has it.
FailureOr<Value> getLabels(func::FuncOp function, RankedTensorType logits) {
  MLIRContext *context = function.getContext();
  auto type = RankedTensorType::get(logits.getShape().drop_back(), IntegerType::get(context, 64));
  if (std::optional<unsigned> index = names::findArg(function, names::kind::kInput, names::name::kLabels)) {
    BlockArgument labels = function.getArgument(*index);
    if (labels.getType() != type)
      return function.emitOpError() << "input 'labels' is of type " << labels.getType() << ", but the logits need "
                                    << type;
    return Value(labels);
  }
  unsigned index = function.getNumArguments();
  if (failed(function.insertArgument(index, type, {}, function.getLoc())))
    return failure();
  names::setArg(function, index, names::kind::kInput, names::name::kLabels);
  function.setArgAttr(index, names::kBound, Builder(context).getI64IntegerAttr(logits.getShape().back()));
  return Value(function.getArgument(index));
}

/// Sum of the tokens' losses and number of valid tokens. The labels are not shifted: the loader has done that, once.
FailureOr<StepLoss> buildCausalLoss(func::FuncOp function, Value logits) {
  auto type = cast<RankedTensorType>(logits.getType());
  if (type.getRank() != 3 || !isa<FloatType>(type.getElementType()))
    return function.emitOpError() << "logits must be floats [batch, sequence, vocabulary] to train on, got " << type;
  FailureOr<Value> labels = getLabels(function, type);
  if (failed(labels))
    return failure();
  auto module = function->getParentOfType<ModuleOp>();
  int64_t ignoreIndex = names::moduleInt(module, names::kModel, "ignore_index").value_or(kDefaultIgnoreIndex);

  Location loc = NameLoc::get(StringAttr::get(function.getContext(), "loss"), function.getLoc());
  OpBuilder builder(getReturn(function));
  // The cross-entropy computes in f32 whatever it reads.
  if (auto extension = logits.getDefiningOp<arith::ExtFOp>())
    logits = extension.getIn();
  ArrayRef<int64_t> tokens = type.getShape().drop_back();
  auto lossType = RankedTensorType::get(tokens, builder.getF32Type());
  auto entropy = SoftmaxCrossEntropyOp::create(builder, loc, lossType, lossType, logits, *labels, ignoreIndex);
  Value sum = reduceSumAll(builder, loc, entropy.getLosses());
  Value valid = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne, *labels,
                                      intSplatLike(builder, loc, *labels, ignoreIndex));
  // Four bytes cross the links, and count two billion tokens.
  Value ones = arith::ExtUIOp::create(builder, loc, RankedTensorType::get(tokens, builder.getI32Type()), valid);
  return StepLoss{sum, reduceSumAll(builder, loc, ones)};
}

/// The user's own loss: one number each, the sum of floats.
FailureOr<StepLoss> getOwnLoss(func::FuncOp function, unsigned sumIndex, unsigned countIndex) {
  func::ReturnOp terminator = getReturn(function);
  Value sum = terminator.getOperand(sumIndex), count = terminator.getOperand(countIndex);
  for (Value value : {sum, count}) {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    if (!type || !type.hasStaticShape() || type.getNumElements() != 1)
      return function.emitOpError() << "loss_sum and loss_count must be one number each, got " << value.getType();
  }
  if (!isa<FloatType>(getElementTypeOrSelf(sum.getType())))
    return function.emitOpError() << "loss_sum must be of floats, got " << sum.getType();
  OpBuilder builder(terminator);
  return StepLoss{reshape(builder, function.getLoc(), sum, {}), reshape(builder, function.getLoc(), count, {})};
}

FailureOr<StepLoss> getLoss(func::FuncOp function) {
  std::optional<unsigned> sum = findResultOfKind(function, names::kind::kLossSum);
  std::optional<unsigned> count = findResultOfKind(function, names::kind::kLossCount);
  if (sum && count)
    return getOwnLoss(function, *sum, *count);
  if (sum || count)
    return function.emitOpError() << "returns " << (sum ? "loss_sum" : "loss_count") << " without "
                                  << (sum ? "loss_count" : "loss_sum") << "; a loss is exported as (sum, count)";
  std::optional<unsigned> logits = findResultOfKind(function, names::kind::kLogits);
  if (!logits)
    return function.emitOpError()
           << "has neither a result of kind 'logits' nor 'loss_sum' and 'loss_count' to train on";
  return buildCausalLoss(function, getReturn(function).getOperand(*logits));
}

/// Marks the weights' dimensions that are the vocabulary: those that the rules of what computes the logits say are
/// their last one.
class VocabularyMarker {
public:
  explicit VocabularyMarker(func::FuncOp function) : function(function) {}

  void mark(Value logits) {
    auto type = cast<RankedTensorType>(logits.getType());
    size = type.getShape().back();
    follow(logits, type.getRank() - 1);
    // As the plan of tensor axes does: a table that has as many rows.
    function.walk([&](TakeOp lookup) {
      if (lookup.getTable().getType().getDimSize(0) == size)
        follow(lookup.getTable(), 0);
    });
  }

private:
  void follow(Value value, int64_t dim) {
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      unsigned index = argument.getArgNumber();
      if (names::argKind(function, index) == names::kind::kWeight && !function.getArgAttr(index, names::kVocabulary))
        function.setArgAttr(index, names::kVocabulary, Builder(function.getContext()).getI64IntegerAttr(dim));
      return;
    }
    auto source = dyn_cast<ShardingRuleOpInterface>(value.getDefiningOp());
    if (!source || !visited.insert({value, dim}).second)
      return;
    ShardingRule rule = source.getShardingRule();
    const ShardingRule::DimFactors &factors = rule.results[cast<OpResult>(value).getResultNumber()][dim];
    if (factors.size() != 1)
      return;
    for (auto [operand, dims] : llvm::zip_equal(source->getOperands(), rule.operands))
      for (auto [index, own] : llvm::enumerate(dims))
        if (own == factors)
          follow(operand, index);
  }

  func::FuncOp function;
  int64_t size = 0;
  llvm::DenseSet<std::pair<Value, int64_t>> visited;
};

struct AddLoss : nd::impl::AddLossBase<AddLoss> {
  void runOnOperation() override {
    FailureOr<func::FuncOp> function = getForward(getOperation());
    if (failed(function) || failed(refuseDropout(*function)))
      return signalPassFailure();
    FailureOr<StepLoss> loss = getLoss(*function);
    if (failed(loss))
      return signalPassFailure();
    VocabularyMarker marker(*function);
    function->walk([&](SoftmaxCrossEntropyOp entropy) { marker.mark(entropy.getLogits()); });
    setResults(*function, {{loss->sum, names::kind::kLossSum, ""}, {loss->count, names::kind::kLossCount, ""}});
  }
};

} // namespace
