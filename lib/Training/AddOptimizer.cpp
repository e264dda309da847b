//===- AddOptimizer.cpp - Clipping and parameter updates ------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "StepFunction.h"
#include "nd/Dialect/ND/IR/Builders.h"
#include "nd/Dialect/ND/IR/Names.h"
#include "nd/Dialect/ND/IR/Signature.h"
#include "nd/Training/Passes.h"
#include "llvm/Support/GlobPattern.h"

namespace nd {
#define GEN_PASS_DEF_ADDOPTIMIZER
#include "nd/Training/Passes.h.inc"
} // namespace nd

using namespace mlir;
using namespace nd;

namespace {

/// PyTorch's clip_grad_norm_ divides by the norm plus this.
constexpr double kClipEpsilon = 1e-6;

/// A weight with its gradient, and the arguments that hold its state.
struct Parameter {
  unsigned index;
  StringRef name;
  Value weight, gradient;
  bool decays;
  SmallVector<StringRef, 2> stateKinds;
  SmallVector<Value, 2> state;
};

/// Scalars that every update reads.
struct UpdateScalars {
  Value lr, bias1, sqrtBias2, gradScale, apply;
};

/// `b` is null where a gradient is an argument of the function itself.
Operation *laterOf(Operation *a, Operation *b) { return b && a->isBeforeInBlock(b) ? b : a; }

struct AddOptimizer : nd::impl::AddOptimizerBase<AddOptimizer> {
  using AddOptimizerBase::AddOptimizerBase;

  void runOnOperation() override {
    FailureOr<func::FuncOp> function = getForward(getOperation());
    if (failed(function) || failed(checkOptions()) || failed(build(*function)))
      signalPassFailure();
  }

  LogicalResult checkOptions() {
    if (optimizer != "adamw" && optimizer != "sgd")
      return getOperation().emitError() << "unknown optimizer '" << optimizer << "'; known are adamw and sgd";
    for (const std::string &glob : noDecay) {
      llvm::Expected<llvm::GlobPattern> pattern = llvm::GlobPattern::create(glob);
      if (!pattern)
        return getOperation().emitError() << "no-decay=" << glob << ": " << llvm::toString(pattern.takeError());
      noDecayPatterns.push_back(std::move(*pattern));
    }
    noDecayUsed.assign(noDecayPatterns.size(), 0);
    return success();
  }

  /// Weights with two or more dimensions in the user's model decay, unless options say otherwise; any name of a tied
  /// weight counts, and that of the parameter that it is a part of.
  bool decays(func::FuncOp function, unsigned index) {
    SmallVector<StringRef> all = names::userNames(function, index);
    bool isExempt = false;
    for (auto [pattern, isUsed] : llvm::zip_equal(noDecayPatterns, noDecayUsed)) {
      bool matches = llvm::any_of(all, [&, &glob = pattern](StringRef name) { return glob.match(name); });
      isExempt |= matches, isUsed |= matches;
    }
    return !isExempt && (decayAll || names::userRank(function, index) >= 2);
  }

  /// A glob that is no weight's name was misspelt.
  LogicalResult checkNoDecay(func::FuncOp function, ArrayRef<Parameter> parameters) {
    for (auto [glob, isUsed] : llvm::zip_equal(noDecay, noDecayUsed))
      if (!isUsed)
        return function.emitOpError() << "has no trainable weight that --no-decay=" << glob
                                      << " matches; names are such as '" << parameters.front().name << "' and '"
                                      << parameters.back().name << "'";
    return success();
  }

  FailureOr<SmallVector<Parameter>> getParameters(func::FuncOp function) {
    SmallVector<StringRef, 2> stateKinds;
    if (optimizer == "adamw")
      stateKinds = {names::kind::kExpAvg, names::kind::kExpAvgSq};
    else if (momentum != 0.0)
      stateKinds = {names::kind::kMomentum};
    SmallVector<Parameter> parameters;
    SignatureIndex signature(function);
    for (unsigned result : llvm::seq(function.getNumResults())) {
      if (names::resultKind(function, result) != names::kind::kGradient)
        continue;
      StringRef name = names::resultName(function, result);
      std::optional<unsigned> index = signature.findArg(names::kind::kWeight, name);
      if (!index)
        return function.emitOpError() << "returns a gradient for '" << name << "', which is not the name of a weight";
      parameters.push_back({*index,
                            name,
                            function.getArgument(*index),
                            getReturn(function).getOperand(result),
                            decays(function, *index),
                            stateKinds,
                            {}});
    }
    if (parameters.empty())
      return function.emitOpError() << "returns no result of kind 'gradient'; run nd-build-backward first";
    if (failed(checkNoDecay(function, parameters)))
      return failure();
    return parameters;
  }

  /// sqrt of the sum of the squares of all gradients; each sum of squares follows its gradient while that is in the
  /// cache.
  static Value buildNorm(OpBuilder &builder, ArrayRef<Parameter> parameters) {
    Value total;
    for (const Parameter &parameter : parameters) {
      Location loc = parameter.weight.getLoc();
      builder.setInsertionPointAfterValue(parameter.gradient);
      Value gradient = convertFloat(builder, loc, parameter.gradient, builder.getF32Type());
      Value sum = reduceSumAll(builder, loc, arith::MulFOp::create(builder, loc, gradient, gradient));
      builder.setInsertionPoint(sum.getParentBlock()->getTerminator());
      total = total ? arith::AddFOp::create(builder, loc, total, sum) : sum;
    }
    return math::SqrtOp::create(builder, total.getLoc(), total);
  }

  /// Without clipping neither depends on the norm, and both exist as soon as the tokens are counted.
  void buildScaleAndFlag(OpBuilder &builder, Location loc, Value norm, Value tokens, UpdateScalars &scalars) {
    auto flagType = RankedTensorType::get({}, builder.getI1Type());
    builder.setInsertionPointAfterValue(tokens);
    scalars.apply =
        arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::sgt, tokens, intSplatLike(builder, loc, tokens, 0));
    scalars.gradScale = scalar(builder, loc, builder.getF32Type(), 1.0);
    if (clip == 0.0)
      return;
    builder.setInsertionPointAfterValue(norm);
    Value divisor = arith::AddFOp::create(builder, loc, norm, splatLike(builder, loc, norm, kClipEpsilon));
    Value factor = arith::DivFOp::create(builder, loc, splatLike(builder, loc, norm, clip), divisor);
    scalars.gradScale = arith::MinimumFOp::create(builder, loc, factor, splatLike(builder, loc, norm, 1.0));
    Value infinity = splatLike(builder, loc, norm, std::numeric_limits<double>::infinity());
    Value finite = arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::OLT, norm, infinity);
    scalars.apply = arith::AndIOp::create(builder, loc, flagType, scalars.apply, finite);
  }

  /// The state's arguments follow the model's, in the order of the weights; the scalars come last.
  UpdateScalars addArguments(func::FuncOp function, MutableArrayRef<Parameter> parameters) {
    Builder builder(function.getContext());
    SmallVector<Type> types;
    SmallVector<DictionaryAttr> attributes;
    SmallVector<Location> locations;
    auto add = [&](Type type, StringRef kind, StringRef name, Location loc, Attribute part = {}) {
      types.push_back(type);
      SmallVector<NamedAttribute> entries = {builder.getNamedAttr(names::kKind, builder.getStringAttr(kind)),
                                             builder.getNamedAttr(names::kName, builder.getStringAttr(name))};
      if (part)
        entries.push_back(builder.getNamedAttr(names::kPart, part));
      attributes.push_back(builder.getDictionaryAttr(entries));
      locations.push_back(loc);
    };
    for (const Parameter &parameter : parameters)
      for (StringRef kind : parameter.stateKinds)
        add(parameter.weight.getType(), kind, parameter.name, parameter.weight.getLoc(),
            function.getArgAttr(parameter.index, names::kPart));
    auto type = RankedTensorType::get({}, builder.getF32Type());
    SmallVector<StringRef> scalarNames = {names::name::kLr};
    if (optimizer == "adamw")
      scalarNames.append({names::name::kBias1, names::name::kSqrtBias2});
    for (StringRef name : scalarNames)
      add(type, names::kind::kScalar, name, function.getLoc());

    unsigned first = function.getNumArguments();
    // Appending to a function with a body cannot fail.
    (void)function.insertArguments(SmallVector<unsigned>(types.size(), first), types, attributes, locations);
    auto next = function.getArguments().begin() + first;
    for (Parameter &parameter : parameters)
      for ([[maybe_unused]] StringRef kind : parameter.stateKinds)
        parameter.state.push_back(*next++);
    UpdateScalars scalars;
    scalars.lr = *next++;
    if (optimizer == "adamw") {
      scalars.bias1 = *next++;
      scalars.sqrtBias2 = *next++;
    }
    return scalars;
  }

  /// Without clipping an update runs as soon as it may: its gradient and the flag exist, and nobody reads the old
  /// weight any more, so that it is computed in place and the gradient's memory is free again.
  void setUpdatePoint(OpBuilder &builder, const Parameter &parameter, Value apply) {
    Block *block = apply.getParentBlock();
    if (clip != 0.0)
      return builder.setInsertionPoint(block->getTerminator());
    Operation *last = laterOf(apply.getDefiningOp(), parameter.gradient.getDefiningOp());
    for (Operation *user : parameter.weight.getUsers())
      if (user != block->getTerminator())
        last = laterOf(last, block->findAncestorOpInBlock(*user));
    builder.setInsertionPointAfter(last);
  }

  /// The new values of the weight and of its state.
  SmallVector<Value> buildUpdate(OpBuilder &builder, const Parameter &parameter, const UpdateScalars &scalars) {
    Location loc = parameter.weight.getLoc();
    double decay = parameter.decays ? weightDecay : 0.0;
    auto number = [](double value) { return APFloat(value); };
    if (optimizer == "adamw")
      return AdamWOp::create(builder, loc, parameter.weight, parameter.gradient, parameter.state[0], parameter.state[1],
                             scalars.lr, scalars.bias1, scalars.sqrtBias2, scalars.gradScale, scalars.apply,
                             number(beta1), number(beta2), number(eps), number(decay))
          ->getResults();
    Value buffer = parameter.state.empty() ? Value() : parameter.state.front();
    return SgdOp::create(builder, loc, parameter.weight.getType(), buffer ? buffer.getType() : Type(), parameter.weight,
                         parameter.gradient, buffer, scalars.lr, scalars.gradScale, scalars.apply, number(momentum),
                         number(decay))
        ->getResults();
  }

  LogicalResult build(func::FuncOp function) {
    FailureOr<SmallVector<Parameter>> parameters = getParameters(function);
    if (failed(parameters))
      return failure();
    std::optional<unsigned> loss = names::findResult(function, names::kind::kMetric, names::name::kLoss);
    std::optional<unsigned> tokens = names::findResult(function, names::kind::kMetric, names::name::kTokens);
    if (!loss || !tokens)
      return function.emitOpError() << "must return the metrics 'loss' and 'tokens'; run nd-build-backward first";
    Value lossValue = getReturn(function).getOperand(*loss), tokensValue = getReturn(function).getOperand(*tokens);

    OpBuilder builder(getReturn(function));
    Value norm = buildNorm(builder, *parameters);
    UpdateScalars scalars = addArguments(function, *parameters);
    buildScaleAndFlag(builder, function.getLoc(), norm, tokensValue, scalars);
    SmallVector<StepResult> results = {{lossValue, names::kind::kMetric, names::name::kLoss},
                                       {norm, names::kind::kMetric, names::name::kGradNorm},
                                       {tokensValue, names::kind::kMetric, names::name::kTokens},
                                       {scalars.apply, names::kind::kMetric, names::name::kApplied}};
    for (const Parameter &parameter : *parameters) {
      setUpdatePoint(builder, parameter, scalars.apply);
      SmallVector<Value> updated = buildUpdate(builder, parameter, scalars);
      results.push_back({updated.front(), names::kind::kWeight, parameter.name});
      for (auto [kind, value] : llvm::zip_equal(parameter.stateKinds, ArrayRef<Value>(updated).drop_front()))
        results.push_back({value, kind, parameter.name});
    }
    if (keepGradients)
      for (const Parameter &parameter : *parameters)
        results.push_back({parameter.gradient, names::kind::kGradient, parameter.name});
    setResults(function, results);
    if (keepGradients)
      for (auto [number, parameter] : llvm::enumerate(*parameters))
        if (Attribute part = function.getArgAttr(parameter.index, names::kPart))
          function.setResultAttr(results.size() - parameters->size() + number, names::kPart, part);
    function.setName(names::kStepFunction);
    return success();
  }

  SmallVector<llvm::GlobPattern> noDecayPatterns;
  SmallVector<bool> noDecayUsed; ///< whether each matches a weight
};

} // namespace
