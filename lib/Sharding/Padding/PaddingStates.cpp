//===- PaddingStates.cpp - What padding holds -----------------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Padding/PaddingStates.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "nd/Dialect/ND/IR/Builders.h"
#include "nd/Dialect/ND/IR/Names.h"

using namespace mlir;
using namespace nd;

namespace {

/// Operations that yield zero for zero.
bool keepsZero(Operation *op) {
  return isa<arith::NegFOp, arith::ExtFOp, arith::TruncFOp, arith::ExtUIOp, arith::ExtSIOp, arith::TruncIOp,
             arith::SIToFPOp, arith::UIToFPOp, arith::FPToSIOp, math::AbsFOp, math::TanhOp, math::ErfOp, math::SqrtOp,
             math::SinOp, math::FloorOp, math::CeilOp, math::TruncOp, math::RoundOp, math::RoundEvenOp, math::Log1pOp,
             math::ExpM1Op, ReshapeOp, TransposeOp, BroadcastOp, ScaleOp, AsPartialOp>(op);
}

/// The operand of an operation that has no finite value where that is zero, or nothing.
std::optional<unsigned> nonZeroOperand(Operation *op) {
  if (isa<arith::DivFOp>(op))
    return 1;
  if (isa<math::RsqrtOp, math::LogOp, math::Log2Op, math::Log10Op>(op))
    return 0;
  if (auto power = dyn_cast<math::PowFOp>(op)) {
    std::optional<llvm::APFloat> exponent = floatSplatOf(power.getRhs());
    if (!exponent || exponent->isNegative())
      return 0;
  }
  return std::nullopt;
}

Padding ofConstant(arith::ConstantOp constant) {
  auto elements = dyn_cast<DenseElementsAttr>(constant.getValue());
  if (!elements || !elements.isSplat())
    return Padding::Any;
  if (isZeroSplat(constant.getResult()))
    return Padding::Zero;
  std::optional<llvm::APFloat> number = floatSplatOf(constant.getResult());
  return number && number->isInfinity() && number->isNegative() ? Padding::NegInf : Padding::Repeated;
}

} // namespace

PaddingStates::PaddingStates(Program &program, const Analysis &analysis, const PaddedSizes &sizes,
                             const llvm::DenseSet<Id> &sequence)
    : classes(analysis.getClasses()), sizes(sizes), sequence(sequence) {
  auto module = program.function->getParentOfType<ModuleOp>();
  ignoreIndex = names::moduleInt(module, names::kModel, "ignore_index").value_or(-100);
  for (BlockArgument argument : program.getBody().getArguments()) {
    bool isLabels = names::argName(program.function, argument.getArgNumber()) == names::name::kLabels;
    for (Place place : placesOf(argument))
      set(argument, place, isLabels && sequence.contains(place.id) ? Padding::Ignored : Padding::Zero);
  }
}

DimensionClasses::Ids PaddingStates::classesOf(Value value, int64_t dim) const {
  if (Value original = originals.lookup(value))
    value = original;
  return classes.getDim(value, dim);
}

SmallVector<PaddingStates::Place> PaddingStates::placesOf(Value value) const {
  SmallVector<Place> places;
  for (int64_t dim : llvm::seq(tensorTypeOf(value).getRank()))
    for (Id id : classesOf(value, dim))
      if (sizes.contains(id))
        places.push_back({dim, id});
  return places;
}

Padding PaddingStates::get(Value value, Place place) const {
  auto it = states.find({value, place.dim, place.id});
  return it == states.end() ? Padding::Any : it->second;
}

std::optional<PaddingStates::Place> PaddingStates::find(const Analysis::Step &step, unsigned operand, int64_t factor,
                                                        Id id) const {
  for (auto [dim, factors] : llvm::enumerate(step.rule.operands[operand]))
    if (llvm::is_contained(factors, factor))
      return Place{static_cast<int64_t>(dim), id};
  return std::nullopt;
}

Padding PaddingStates::along(const Analysis::Step &step, unsigned operand, int64_t factor, Id id) const {
  std::optional<Place> place = find(step, operand, factor, id);
  return place ? get(step.op->getOperand(operand), *place) : Padding::Repeated;
}

int64_t PaddingStates::factorOf(const Analysis::Step &step, unsigned result, Place place) const {
  for (int64_t factor : step.rule.results[result][place.dim])
    if (llvm::is_contained(classes.getFactor(step.op, factor), place.id))
      return factor;
  return -1;
}

void PaddingStates::transfer(const Analysis::Step &step) {
  for (auto [index, result] : llvm::enumerate(step.op->getResults()))
    for (Place place : placesOf(result))
      set(result, place,
          llvm::count(classesOf(result, place.dim), place.id) > 1 ? Padding::Any : ofResult(step, index, place));
}

void PaddingStates::addCopy(Value copy, Value original) {
  Value first = originals.lookup(original);
  originals[copy] = first ? first : original;
  for (Place place : placesOf(original))
    set(copy, place, get(original, place));
}

Padding PaddingStates::ofResult(const Analysis::Step &step, unsigned result, Place place) const {
  Operation *op = step.op;
  int64_t factor = factorOf(step, result, place);
  auto state = [&](unsigned operand) { return along(step, operand, factor, place.id); };
  auto isZero = [&](unsigned operand) { return state(operand) == Padding::Zero; };
  auto stateOf = [&](OpOperand &operand) { return state(operand.getOperandNumber()); };
  auto zeroIf = [](bool condition) { return condition ? Padding::Zero : Padding::Any; };
  auto operands = llvm::seq<unsigned>(op->getNumOperands());

  if (auto constant = dyn_cast<arith::ConstantOp>(op))
    return ofConstant(constant);
  if (auto iota = dyn_cast<IotaOp>(op))
    return static_cast<int64_t>(iota.getDim()) == place.dim ? Padding::Index : Padding::Repeated;
  if (isa<arith::CmpIOp, arith::CmpFOp>(op))
    return ofComparison(op, state(0), state(1));
  if (isa<arith::SelectOp>(op)) {
    if (state(0) == Padding::True)
      return state(1);
    if (isZero(0))
      return state(2);
    if (state(1) == Padding::Wild || state(2) == Padding::Wild)
      return Padding::Wild;
    bool varies = state(1) == Padding::Repeated && state(0) != Padding::Repeated;
    return state(1) == state(2) && !varies ? state(1) : Padding::Any;
  }
  std::optional<unsigned> nonZero = nonZeroOperand(op);
  if ((nonZero && isZero(*nonZero)) ||
      llvm::any_of(operands, [&](unsigned operand) { return state(operand) == Padding::Wild; }))
    return Padding::Wild;
  bool isElementwise = op->hasTrait<OpTrait::Elementwise>() || isa<BroadcastOp>(op);
  if (isElementwise && llvm::all_of(operands, [&](unsigned operand) { return state(operand) == Padding::Repeated; }))
    return Padding::Repeated;
  if (isa<ReshapeOp, TransposeOp, BroadcastOp, MicrobatchOp, AccumulateOp, arith::ExtFOp, arith::TruncFOp>(op))
    return state(0);
  if (isa<arith::ExtSIOp, arith::TruncIOp>(op) && state(0) == Padding::Ignored) // a small number
    return Padding::Ignored;
  if (keepsZero(op) || isa<arith::DivFOp, ReduceOp, RopeOp>(op))
    return zeroIf(isZero(0));
  if (isa<arith::MulFOp, arith::MulIOp, arith::AndIOp, DotGeneralOp>(op))
    return zeroIf(isZero(0) || isZero(1));
  if (isa<arith::SubFOp, arith::SubIOp>(op) && state(0) == Padding::NegInf)
    return Padding::NegInf;
  if (isa<arith::AddFOp, arith::AddIOp, arith::SubFOp, arith::SubIOp, arith::OrIOp, arith::MaximumFOp,
          arith::MinimumFOp, AdamWOp, SgdOp>(op))
    return zeroIf(isZero(0) && isZero(1));
  if (isa<math::ExpOp>(op))
    return zeroIf(state(0) == Padding::NegInf);
  if (isa<SliceOp, ConcatOp>(op))
    return zeroIf(llvm::all_of(operands, isZero));
  if (isa<PadOp, TakeOp>(op))
    return zeroIf(isZero(0));
  if (auto scatter = dyn_cast<ScatterAddOp>(op)) {
    bool init = !scatter.getInit() || isZero(2);
    return zeroIf(init && (place.dim == 0 || isZero(1))); // no index reaches the padding of the rows
  }
  if (isa<RmsNormOp>(op))
    return zeroIf(result == 0 && isZero(0));
  if (result == 0 && place.dim == 1 && isa<AttentionOp, AttentionGradOp>(op) && op->hasAttr("kv_map"))
    return Padding::Zero;                         // it names the heads that see nothing
  if (auto attention = dyn_cast<AttentionOp>(op)) // heads: probabilities times zero
    return zeroIf(result == 0 && !sequence.contains(place.id) && stateOf(attention.getValueMutable()) == Padding::Zero);
  if (auto gradient = dyn_cast<AttentionGradOp>(op)) {
    bool hidesKeys = sequence.contains(place.id) && result != 0; // keys behind `valid` are invisible
    return zeroIf(hidesKeys || stateOf(gradient.getResultGradMutable()) == Padding::Zero);
  }
  if (auto entropy = dyn_cast<SoftmaxCrossEntropyOp>(op))
    return zeroIf(result == 0 && stateOf(entropy.getLabelsMutable()) == Padding::Ignored);
  if (auto gradient = dyn_cast<SoftmaxCrossEntropyGradOp>(op))
    return zeroIf(stateOf(gradient.getLabelsMutable()) == Padding::Ignored ||
                  stateOf(gradient.getLossesGradMutable()) == Padding::Zero);
  return Padding::Any;
}

Padding PaddingStates::ofComparison(Operation *op, Padding left, Padding right) const {
  auto compare = dyn_cast<arith::CmpIOp>(op);
  if (left == Padding::Repeated && right == Padding::Repeated)
    return Padding::Repeated;
  if (!compare)
    return Padding::Any;
  using Predicate = arith::CmpIPredicate;
  Predicate predicate = compare.getPredicate();
  // Below them are labels and logical sizes, but not indices along another padded dimension.
  auto isLogical = [&](Value value) {
    return llvm::none_of(placesOf(value), [&](Place place) {
      Padding state = get(value, place);
      return state == Padding::Index || state == Padding::Any;
    });
  };
  if (left == Padding::Index && (predicate == Predicate::slt || predicate == Predicate::eq) &&
      isLogical(compare.getRhs()))
    return Padding::Zero;
  if (right == Padding::Index && predicate == Predicate::eq && isLogical(compare.getLhs()))
    return Padding::Zero;
  DenseElementsAttr elements;
  if (left == Padding::Ignored && matchPattern(compare.getRhs(), m_Constant(&elements)) && elements.isSplat() &&
      elements.getSplatValue<APInt>().getSExtValue() == ignoreIndex) {
    if (predicate == Predicate::eq)
      return Padding::True;
    if (predicate == Predicate::ne)
      return Padding::Zero;
  }
  return Padding::Any;
}
