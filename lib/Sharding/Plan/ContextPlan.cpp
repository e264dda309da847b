//===- ContextPlan.cpp - How ranks share a sequence -----------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Plan/ContextPlan.h"
#include "nd/Dialect/ND/IR/Builders.h"
#include "nd/Dialect/ND/IR/Names.h"

using namespace mlir;
using namespace nd;

namespace {

/// Chunks in the order in which ranks 0, 1, ... store them, two each.
SmallVector<int64_t> zigZag(int64_t ranks) {
  SmallVector<int64_t> order;
  for (int64_t rank : llvm::seq(ranks)) {
    order.push_back(rank);
    order.push_back(2 * ranks - 1 - rank);
  }
  return order;
}

/// Each key head `times` times, one behind the other: query heads find theirs as before.
Value repeatHeads(OpBuilder &builder, Value keys, int64_t times) {
  SmallVector<int64_t> shape(tensorTypeOf(keys).getShape()), wide(shape);
  wide.insert(wide.begin() + 2, times);
  shape[1] *= times;
  return reshape(builder, keys.getLoc(), broadcastTo(builder, keys.getLoc(), keys, wide, {0, 1, 3, 4}), shape);
}

/// The gradient of the heads that were repeated.
Value sumRepeated(OpBuilder &builder, Value gradient, int64_t times) {
  SmallVector<int64_t> shape(tensorTypeOf(gradient).getShape());
  shape[1] /= times;
  shape.insert(shape.begin() + 2, times);
  return reduceSum(builder, gradient.getLoc(), reshape(builder, gradient.getLoc(), gradient, shape), {2});
}

/// Whether queries and keys are places of the sequence. If not, as between a sequence and one that its ranks hold
/// whole, keys are gathered where they are shards. Where no sequence is known, all are taken to be.
bool isWithin(AttentionOp attention, const Analysis &analysis, const llvm::DenseSet<DimensionClasses::Id> &sequence) {
  auto has = [&](Value value) { return llvm::is_contained(sequenceDimsOf(value, analysis, sequence), 2); };
  return sequence.empty() || (has(attention.getQuery()) && has(attention.getKey()));
}

class ContextPlan {
public:
  ContextPlan(Program &program, const ShardingOptions &options, int64_t ranks)
      : program(program), options(options), ranks(ranks) {
    if (const ShardingOptions::Axis *tensor = options.findAxis(AxisRole::tensor))
      tensorRanks = tensor->size;
  }

  LogicalResult run() {
    if (program.getBody().getOps<AttentionOp>().empty())
      return success();
    FailureOr<Analysis> analysis = Analysis::get(program);
    if (failed(analysis))
      return failure();
    llvm::DenseSet<DimensionClasses::Id> sequence = findSequence(program, *analysis);
    bool inOrder = true;
    for (auto attention : program.getBody().getOps<AttentionOp>()) {
      Choice choice{attention, "gather", 1, isWithin(attention, *analysis, sequence)};
      if (choice.isWithin) {
        FailureOr<StringRef> mode = modeOf(attention);
        if (failed(mode))
          return failure();
        choice.mode = *mode;
        choice.repeats = *mode == "ulysses" ? *keyRepeats(attention) : 1;
        inOrder &= *mode == "ulysses";
      }
      choices.push_back(choice);
    }
    // Where nothing is known to be a sequence, nothing is stored otherwise; where each query sees all keys, ranks have
    // the same work in any order, and one shard each takes less padding than two chunks.
    bool seesSome = llvm::any_of(choices, [](Choice &choice) {
      return choice.isWithin && (choice.op.getCausal() || choice.op.getWindow() > 0);
    });
    if (!inOrder && seesSome && !sequence.empty())
      chooseOrder(*analysis);
    mark();
    return success();
  }

private:
  struct Choice {
    AttentionOp op;
    StringRef mode;
    int64_t repeats; ///< of each key head
    bool isWithin;   ///< queries and keys are places of the sequence
  };

  /// Why a mode does not fit, or nothing.
  std::string obstacle(AttentionOp attention, StringRef mode) {
    int64_t heads = attention.getQuery().getType().getDimSize(1), keyHeads = attention.getKey().getType().getDimSize(1);
    if (mode == "ulysses" && !keyRepeats(attention))
      return "it has " + std::to_string(heads) + " query heads and " + std::to_string(keyHeads) +
             " key heads, and cp x tp = " + std::to_string(tensorRanks * ranks) +
             " does not divide them, nor key heads repeated on the ranks of tp; use ring or gather";
    return {};
  }

  /// How often each key head has to be there for cp to divide the heads of a rank of tp; nothing where it cannot.
  std::optional<int64_t> keyRepeats(AttentionOp attention) {
    int64_t heads = attention.getQuery().getType().getDimSize(1), keyHeads = attention.getKey().getType().getDimSize(1);
    int64_t parts = tensorRanks * ranks, group = heads / keyHeads;
    if (heads % parts != 0)
      return std::nullopt;
    if (keyHeads % parts == 0)
      return 1;
    if (attention.getKvMap() || keyHeads % tensorRanks != 0)
      return std::nullopt;
    for (int64_t times = 2; times <= group; ++times)
      if (group % times == 0 && keyHeads * times % parts == 0)
        return times;
    return std::nullopt;
  }

  FailureOr<StringRef> modeOf(AttentionOp attention) {
    StringRef asked = options.cpMode;
    if (asked != "auto") {
      std::string why = obstacle(attention, asked);
      if (!why.empty())
        return attention.emitError() << "--cp=" << asked << " does not fit this attention: " << why;
      return asked;
    }
    int64_t heads = attention.getQuery().getType().getDimSize(1), keyHeads = attention.getKey().getType().getDimSize(1);
    // 3 (c-1) 2 hk against 2 (c-1)/c (2 hq + 2 hk), in bytes of a token.
    std::optional<int64_t> repeats = keyRepeats(attention);
    bool sendsLess = repeats && 2 * (heads + keyHeads * *repeats) < 3 * ranks * keyHeads;
    return StringRef(sendsLess ? "ulysses" : "ring");
  }

  /// Zig-zag, so that all ranks have the same work, unless something depends on places.
  void chooseOrder(const Analysis &analysis) {
    std::optional<PlaceDependence> fixed = findPlaceDependence(program, analysis);
    if (!fixed)
      fixed = findPaddedWhole(analysis);
    if (!fixed)
      order = zigZag(ranks);
    else if (llvm::any_of(choices, [](Choice &choice) { return choice.op.getCausal(); }))
      fixed->op->emitWarning() << fixed->what
                               << ", so cp keeps the sequence in its order instead of zig-zag: later ranks of cp have "
                                  "more to compute; take places from position_ids to balance them";
  }

  /// What takes the whole of a sequence without its padding, which only its own order has at the end.
  std::optional<PlaceDependence> findPaddedWhole(const Analysis &analysis) {
    llvm::DenseSet<DimensionClasses::Id> sequence = findSequence(program, analysis);
    for (const Analysis::Step &step : analysis.getSteps())
      for (auto [index, factor] : llvm::enumerate(step.rule.factors)) {
        if (factor.kind != FactorKind::NeedReplication || isa<AttentionOp, AttentionGradOp>(step.op))
          continue;
        for (DimensionClasses::Id id : analysis.getClasses().getFactor(step.op, index))
          if (sequence.contains(id) && analysis.getClasses().getSize(id) % (2 * ranks * tensorRanks) != 0)
            return PlaceDependence{
                step.op,
                ("'" + step.op->getName().getStringRef() + "' runs over all of a sequence that is padded").str()};
      }
    return std::nullopt;
  }

  template <typename AttentionLike> void markOne(AttentionLike op, const Choice &choice) {
    op.setCpMode(choice.mode);
    if (!order.empty() && choice.isWithin)
      op.setOrderAttr(Builder(op.getContext()).getDenseI64ArrayAttr(order));
  }

  void mark() {
    for (Choice &choice : choices) {
      markOne(choice.op, choice);
      if (choice.repeats == 1)
        continue;
      OpBuilder builder(choice.op);
      choice.op.getKeyMutable().assign(repeatHeads(builder, choice.op.getKey(), choice.repeats));
      choice.op.getValueMutable().assign(repeatHeads(builder, choice.op.getValue(), choice.repeats));
    }
    for (auto gradient : llvm::make_early_inc_range(program.getBody().getOps<AttentionGradOp>())) {
      auto *it = llvm::find_if(choices, [&](Choice &choice) { return choice.op.getLse() == gradient.getLse(); });
      if (it == choices.end()) {
        gradient.setCpMode("gather");
        continue;
      }
      markOne(gradient, *it);
      if (it->repeats > 1)
        takeRepeatedKeys(gradient, it->op, it->repeats);
    }
  }

  /// Backward reads what forward has exchanged.
  void takeRepeatedKeys(AttentionGradOp op, AttentionOp forward, int64_t times) {
    op.getKeyMutable().assign(forward.getKey());
    op.getValueMutable().assign(forward.getValue());
    OpBuilder builder(op->getContext());
    builder.setInsertionPointAfter(op);
    for (Value result : {Value(op.getKeyGrad()), Value(op.getValueGrad())}) {
      SmallVector<int64_t> shape(tensorTypeOf(result).getShape());
      shape[1] *= times;
      result.setType(tensorTypeOf(result).clone(shape));
      Value sum = sumRepeated(builder, result, times);
      result.replaceAllUsesExcept(sum, sum.getDefiningOp()->getOperand(0).getDefiningOp());
    }
  }

  Program &program;
  const ShardingOptions &options;
  int64_t ranks, tensorRanks = 1;
  SmallVector<Choice> choices;
  SmallVector<int64_t> order;
};

} // namespace

LogicalResult nd::planContext(Program &program, const ShardingOptions &options) {
  const ShardingOptions::Axis *context = options.findAxis(AxisRole::context);
  if (!context || context->size == 1)
    return success();
  return ContextPlan(program, options, context->size).run();
}

DenseI64ArrayAttr nd::storedOrder(Program &program) {
  for (auto attention : program.getBody().getOps<AttentionOp>())
    if (DenseI64ArrayAttr order = attention.getOrderAttr())
      return order;
  return {};
}

int64_t nd::getBatchDim(BlockArgument input) {
  return llvm::any_of(input.getUsers(), llvm::IsaPred<MicrobatchOp>) ? 1 : 0;
}

bool nd::hasSequence(func::FuncOp function, unsigned argument) {
  if (names::argKind(function, argument) != names::kind::kInput)
    return false;
  auto module = function->getParentOfType<ModuleOp>();
  auto type = cast<RankedTensorType>(function.getArgumentTypes()[argument]);
  std::optional<int64_t> batch = names::moduleInt(module, names::kModel, "batch");
  std::optional<int64_t> sequence = names::moduleInt(module, names::kModel, "seq");
  // A padded sequence keeps its logical size aside.
  auto logical = function.getArgAttrOfType<DenseI64ArrayAttr>(argument, names::kGlobalShape);
  ArrayRef<int64_t> shape = logical ? logical.asArrayRef() : type.getShape();
  shape = shape.drop_front(getBatchDim(function.getArgument(argument)));
  return batch && sequence && shape.size() >= 2 && shape[0] == *batch && shape[1] == *sequence &&
         isa<IntegerType>(type.getElementType());
}

llvm::DenseSet<DimensionClasses::Id> nd::findSequence(Program &program, const Analysis &analysis) {
  llvm::DenseSet<DimensionClasses::Id> sequence;
  for (BlockArgument argument : program.getBody().getArguments())
    if (hasSequence(program.function, argument.getArgNumber()))
      for (DimensionClasses::Id id : analysis.getClasses().getDim(argument, getBatchDim(argument) + 1))
        sequence.insert(id);
  return sequence;
}

SmallVector<int64_t> nd::sequenceDimsOf(Value value, const Analysis &analysis,
                                        const llvm::DenseSet<DimensionClasses::Id> &sequence) {
  SmallVector<int64_t> dims;
  for (int64_t dim : llvm::seq(cast<RankedTensorType>(value.getType()).getRank()))
    if (llvm::any_of(analysis.getClasses().getDim(value, dim),
                     [&](DimensionClasses::Id id) { return sequence.contains(id); }))
      dims.push_back(dim);
  return dims;
}

std::optional<int64_t> nd::storedSequenceDim(func::FuncOp function, BlockArgument input, const Analysis &analysis,
                                             const llvm::DenseSet<DimensionClasses::Id> &sequence) {
  if (names::argKind(function, input.getArgNumber()) != names::kind::kInput)
    return std::nullopt;
  SmallVector<int64_t> dims = sequenceDimsOf(input, analysis, sequence);
  return dims.size() == 1 ? std::optional(dims.front()) : std::nullopt;
}

std::string nd::findOwnPlaces(AttentionOp attention, const Analysis &analysis,
                              const llvm::DenseSet<DimensionClasses::Id> &sequence) {
  struct {
    Value value;
    SmallVector<int64_t, 2> dims;
    StringRef name;
  } operands[] = {{attention.getPositions(), {1}, "positions"},
                  {attention.getDocuments(), {1}, "documents"},
                  {attention.getKeyPadding(), {1}, "a key padding"},
                  {attention.getMask(), {2, 3}, "a mask"}};
  for (const auto &operand : operands) {
    if (!operand.value)
      continue;
    auto type = cast<RankedTensorType>(operand.value.getType());
    for (int64_t dim : operand.dims) {
      auto follows = [&](DimensionClasses::Id id) { return sequence.contains(id); };
      DimensionClasses::Ids ids = analysis.getClasses().getDim(operand.value, dim);
      if (type.getDimSize(dim) != 1 && (ids.empty() || !llvm::all_of(ids, follows)))
        return operand.name.str();
    }
  }
  return {};
}

std::optional<PlaceDependence> nd::findPlaceDependence(Program &program, const Analysis &analysis) {
  llvm::DenseSet<DimensionClasses::Id> sequence = findSequence(program, analysis);
  if (sequence.empty())
    return std::nullopt;
  for (BlockArgument argument : program.getBody().getArguments())
    if (!argument.use_empty() && !storedSequenceDim(program.function, argument, analysis, sequence) &&
        !sequenceDimsOf(argument, analysis, sequence).empty())
      return PlaceDependence{*argument.user_begin(),
                             describe(argument) + " has an element for each place of the sequence"};
  for (OpOperand &result : program.getReturn()->getOpOperands())
    if (sequenceDimsOf(result.get(), analysis, sequence).size() > 1)
      return PlaceDependence{result.getOwner(), describeResult(program.function, result.getOperandNumber()) +
                                                    " has the sequence in two dimensions"};
  for (const Analysis::Step &step : analysis.getSteps()) {
    if (auto attention = dyn_cast<AttentionOp>(step.op)) {
      if ((attention.getCausal() || attention.getWindow()) && !isWithin(attention, analysis, sequence))
        return PlaceDependence{step.op, "'nd.attention' compares places of two sequences"};
      std::string own = findOwnPlaces(attention, analysis, sequence);
      if (!own.empty())
        return PlaceDependence{step.op, "'nd.attention' has " + own + " that no input of batch and sequence gives"};
    }
    if (isa<SoftmaxOp, AttentionOp, AttentionGradOp, LayerNormOp, RmsNormOp>(step.op))
      continue;
    auto iota = dyn_cast<IotaOp>(step.op);
    for (auto [index, factor] : llvm::enumerate(step.rule.factors)) {
      bool knowsPlaces = factor.kind == FactorKind::NeedReplication ||
                         (iota && llvm::is_contained(step.rule.results[0][iota.getDim()], static_cast<int64_t>(index)));
      if (knowsPlaces && llvm::any_of(analysis.getClasses().getFactor(step.op, index),
                                      [&](DimensionClasses::Id id) { return sequence.contains(id); }))
        return PlaceDependence{
            step.op, ("'" + step.op->getName().getStringRef() + "' depends on places along the sequence").str()};
    }
  }
  return std::nullopt;
}

LogicalResult nd::checkStoredOrder(Program &program, const Analysis &analysis) {
  if (!storedOrder(program))
    return success();
  std::optional<PlaceDependence> found = findPlaceDependence(program, analysis);
  if (!found)
    return success();
  return found->op->emitError() << found->what
                                << ", which cp stores in zig-zag order; take them from position_ids, or "
                                   "use --cp=ulysses, or leave cp out";
}
