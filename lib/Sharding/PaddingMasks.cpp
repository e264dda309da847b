//===- PaddingMasks.cpp - What padding holds, and where it must not count -===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "PaddingMasks.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "nd/Dialect/ND/IR/Builders.h"
#include "nd/Dialect/ND/IR/Names.h"

using namespace mlir;
using namespace nd;

namespace {

using Id = DimensionClasses::Id;

RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

enum class Padding {
  Any,
  Zero, ///< zeros, or false
  True,
  Ignored, ///< the label that does not count
  NegInf,
  Index, ///< indices of the padding itself: above all logical ones
};

class Masks {
public:
  Masks(Program &program, const Analysis &analysis, const PaddedSizes &sizes, const llvm::DenseSet<Id> &sequence,
        bool inOrder)
      : program(program), analysis(analysis), classes(analysis.getClasses()), sizes(sizes), sequence(sequence),
        inOrder(inOrder) {
    auto module = program.function->getParentOfType<ModuleOp>();
    ignoreIndex = names::moduleInt(module, names::kModel, "ignore_index").value_or(-100);
  }

  LogicalResult run() {
    for (BlockArgument argument : program.getBody().getArguments()) {
      bool isLabels = names::argName(program.function, argument.getArgNumber()) == names::name::kLabels;
      for (Id id : paddedClassesOf(argument))
        states[{argument, id}] = isLabels && sequence.contains(id) ? Padding::Ignored : Padding::Zero;
    }
    for (const Analysis::Step &step : analysis.getSteps()) {
      if (failed(maskOperands(step)))
        return failure();
      for (auto [index, result] : llvm::enumerate(step.op->getResults()))
        for (Id id : paddedClassesOf(result))
          states[{result, id}] = transfer(step.op, index, id);
    }
    for (OpOperand &operand : program.getReturn()->getOpOperands()) {
      StringRef kind = names::resultKind(program.function, operand.getOperandNumber());
      if (kind != names::kind::kOutput && kind != names::kind::kLogits)
        for (Id id : paddedClassesOf(operand.get()))
          if (failed(require(operand, id)))
            return failure();
    }
    return success();
  }

private:
  SmallVector<Id> paddedClassesOf(Value value) {
    SmallVector<Id> found;
    for (int64_t dim : llvm::seq(typeOf(value).getRank()))
      for (Id id : classesOf(value, dim))
        if (sizes.contains(id))
          found.push_back(id);
    return found;
  }

  /// A masked value has the dimensions of the one that was masked.
  DimensionClasses::Ids classesOf(Value value, int64_t dim) {
    if (Value original = originals.lookup(value))
      value = original;
    return classes.getDim(value, dim);
  }

  bool has(Value value, Id id) { return llvm::is_contained(paddedClassesOf(value), id); }
  Padding stateOf(Value value, Id id) {
    auto it = states.find({value, id});
    return it == states.end() ? Padding::Any : it->second;
  }
  bool isZero(Value value, Id id) { return stateOf(value, id) == Padding::Zero; }

  /// Operations that yield zero for zero.
  static bool keepsZero(Operation *op) {
    return isa<arith::NegFOp, arith::ExtFOp, arith::TruncFOp, arith::ExtUIOp, arith::ExtSIOp, arith::TruncIOp,
               arith::SIToFPOp, arith::UIToFPOp, arith::FPToSIOp, math::AbsFOp, math::TanhOp, math::ErfOp, math::SqrtOp,
               math::SinOp, math::FloorOp, math::CeilOp, math::TruncOp, math::RoundOp, math::RoundEvenOp, math::Log1pOp,
               math::ExpM1Op, ReshapeOp, TransposeOp, BroadcastOp, ScaleOp, AsPartialOp>(op);
  }

  Padding transfer(Operation *op, unsigned result, Id id) {
    auto zeroIf = [](bool condition) { return condition ? Padding::Zero : Padding::Any; };
    auto operandIsZero = [&](unsigned index) { return isZero(op->getOperand(index), id); };
    if (auto constant = dyn_cast<arith::ConstantOp>(op))
      return ofConstant(constant);
    if (isa<IotaOp>(op))
      return llvm::is_contained(classes.getDim(op->getResult(0), cast<IotaOp>(op).getDim()), id) ? Padding::Index
                                                                                                 : Padding::Any;
    if (isa<ReshapeOp, TransposeOp, BroadcastOp, arith::ExtFOp, arith::TruncFOp>(op) && has(op->getOperand(0), id))
      return stateOf(op->getOperand(0), id);
    if (keepsZero(op))
      return zeroIf(operandIsZero(0));
    if (isa<arith::MulFOp, arith::MulIOp, arith::AndIOp>(op))
      return zeroIf(operandIsZero(0) || operandIsZero(1));
    if (isa<arith::AddFOp, arith::AddIOp, arith::OrIOp, arith::MaximumFOp, arith::MinimumFOp>(op))
      return zeroIf(operandIsZero(0) && operandIsZero(1));
    if (isa<arith::SubFOp, arith::SubIOp>(op)) {
      if (has(op->getOperand(0), id) && stateOf(op->getOperand(0), id) == Padding::NegInf)
        return Padding::NegInf;
      return zeroIf(operandIsZero(0) && operandIsZero(1));
    }
    if (isa<arith::DivFOp>(op))
      return zeroIf(operandIsZero(0));
    if (isa<math::ExpOp>(op))
      return zeroIf(stateOf(op->getOperand(0), id) == Padding::NegInf);
    if (auto compare = dyn_cast<arith::CmpIOp>(op))
      return ofComparison(compare, id);
    if (auto select = dyn_cast<arith::SelectOp>(op)) {
      Padding condition = stateOf(select.getCondition(), id);
      Padding a = stateOf(select.getTrueValue(), id), b = stateOf(select.getFalseValue(), id);
      if (condition == Padding::True)
        return a;
      if (condition == Padding::Zero)
        return b;
      return a == b ? a : Padding::Any;
    }
    if (isa<SliceOp, ConcatOp>(op))
      return zeroIf(llvm::all_of(op->getOperands(), [&](Value v) { return isZero(v, id); }));
    if (auto pad = dyn_cast<PadOp>(op))
      return zeroIf(isZero(pad.getInput(), id));
    if (isa<ReduceOp>(op))
      return zeroIf(operandIsZero(0));
    if (isa<DotGeneralOp>(op))
      return zeroIf(operandIsZero(0) || operandIsZero(1));
    if (isa<TakeOp>(op))
      return zeroIf(operandIsZero(0) && !has(op->getOperand(1), id));
    if (auto scatter = dyn_cast<ScatterAddOp>(op)) {
      bool rows = llvm::is_contained(classes.getDim(scatter.getResult(), 0), id); // no index reaches the padding
      bool init = !scatter.getInit() || isZero(scatter.getInit(), id);
      return zeroIf(init && (rows || isZero(scatter.getUpdates(), id)));
    }
    if (isa<RopeOp>(op))
      return zeroIf(operandIsZero(0));
    if (isa<RmsNormOp>(op))
      return zeroIf(result == 0 && operandIsZero(0));
    if (auto attention = dyn_cast<AttentionOp>(op)) // heads: probabilities times zero
      return zeroIf(result == 0 && !sequence.contains(id) && isZero(attention.getValue(), id));
    if (auto gradient = dyn_cast<AttentionGradOp>(op)) {
      if (sequence.contains(id)) // keys behind `valid` are invisible
        return zeroIf(result != 0 || isZero(gradient.getResultGrad(), id));
      return zeroIf(isZero(gradient.getResultGrad(), id));
    }
    if (auto entropy = dyn_cast<SoftmaxCrossEntropyOp>(op))
      return zeroIf(result == 0 && stateOf(entropy.getLabels(), id) == Padding::Ignored);
    if (auto gradient = dyn_cast<SoftmaxCrossEntropyGradOp>(op))
      return zeroIf(stateOf(gradient.getLabels(), id) == Padding::Ignored || isZero(gradient.getLossesGrad(), id));
    if (isa<AdamWOp, SgdOp>(op))
      return zeroIf(operandIsZero(0) && operandIsZero(1));
    return Padding::Any;
  }

  static Padding ofConstant(arith::ConstantOp constant) {
    auto elements = dyn_cast<DenseElementsAttr>(constant.getValue());
    if (!elements || !elements.isSplat())
      return Padding::Any;
    if (isZeroSplat(constant.getResult()))
      return Padding::Zero;
    std::optional<llvm::APFloat> number = floatSplatOf(constant.getResult());
    return number && number->isInfinity() && number->isNegative() ? Padding::NegInf : Padding::Any;
  }

  Padding ofComparison(arith::CmpIOp compare, Id id) {
    Padding a = stateOf(compare.getLhs(), id), b = stateOf(compare.getRhs(), id);
    using Predicate = arith::CmpIPredicate;
    Predicate predicate = compare.getPredicate();
    if (a == Padding::Index && (predicate == Predicate::slt || predicate == Predicate::eq))
      return Padding::Zero; // of a label or a logical size
    if (b == Padding::Index && predicate == Predicate::eq)
      return Padding::Zero;
    DenseElementsAttr elements;
    if (a == Padding::Ignored && matchPattern(compare.getRhs(), m_Constant(&elements)) && elements.isSplat() &&
        elements.getSplatValue<APInt>().getSExtValue() == ignoreIndex) {
      if (predicate == Predicate::eq)
        return Padding::True;
      if (predicate == Predicate::ne)
        return Padding::Zero;
    }
    return Padding::Any;
  }

  /// Sets the padding of operands to zero where it would count.
  LogicalResult maskOperands(const Analysis::Step &step) {
    Operation *op = step.op;
    if (isa<AdamWOp, SgdOp>(op)) {
      for (Id id : paddedClassesOf(op->getOperand(1)))
        if (failed(require(op->getOpOperand(1), id)))
          return failure();
      return success();
    }
    for (auto [index, factor] : llvm::enumerate(step.rule.factors)) {
      if (factor.kind != FactorKind::Reduction)
        continue;
      for (Id id : classes.getFactor(op, index)) {
        if (!sizes.contains(id))
          continue;
        if (isa<DotGeneralOp>(op)) {
          if (!isZero(op->getOperand(0), id) && !isZero(op->getOperand(1), id) &&
              failed(require(op->getOpOperand(0), id)))
            return failure();
        } else if (isa<TakeOp>(op)) {
          continue; // no index reaches the padding
        } else {
          OpOperand &summed = op->getOpOperand(isa<ScatterAddOp, ScatterAddAlongOp>(op) ? 1 : 0);
          bool isMax = factor.reduction == ReductionKind::max;
          Padding state = stateOf(summed.get(), id);
          if (isMax ? state == Padding::NegInf : state == Padding::Zero)
            continue;
          if (factor.reduction != ReductionKind::sum)
            return op->emitError() << "takes the " << stringifyReductionKind(factor.reduction)
                                   << " over a dimension that has to be padded from " << classes.getSize(id) << " to "
                                   << sizes.lookup(id) << "; choose a mesh that divides it";
          if (failed(require(summed, id)))
            return failure();
        }
      }
    }
    return success();
  }

  /// Makes the padding of an operand zero.
  LogicalResult require(OpOperand &operand, Id id) {
    Value value = operand.get();
    if (stateOf(value, id) == Padding::Zero)
      return success();
    Operation *op = operand.getOwner();
    std::optional<int64_t> where;
    int64_t inner = 1;
    for (int64_t dim : llvm::seq(typeOf(value).getRank())) {
      DimensionClasses::Ids ids = classesOf(value, dim);
      if (ids.empty() || ids.front() != id)
        continue;
      where = dim;
      for (Id minor : ArrayRef<Id>(ids).drop_front())
        inner *= sizes.contains(minor) ? sizes.lookup(minor) : classes.getSize(minor);
    }
    if (!where || (sequence.contains(id) && !inOrder))
      return op->emitError() << "'" << op->getName() << "' would count the padding of a dimension of "
                             << classes.getSize(id) << " that is padded to " << sizes.lookup(id)
                             << ", and where it is stored it cannot be set to zero; choose a mesh that divides it";
    OpBuilder builder(op);
    Location loc = op->getLoc();
    ArrayRef<int64_t> shape = typeOf(value).getShape();
    Value masked = masks.lookup({value, id});
    if (!masked) {
      builder.setInsertionPointAfterValue(value);
      Value place = iota(builder, loc, builder.getI64Type(), shape, *where);
      Value isReal = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, place,
                                           intSplatLike(builder, loc, place, classes.getSize(id) * inner));
      bool isFloat = isa<FloatType>(typeOf(value).getElementType());
      Value zero = isFloat ? splatLike(builder, loc, value, 0.0) : intSplatLike(builder, loc, value, 0);
      masked = select(builder, loc, isReal, value, zero);
      Value original = originals.lookup(value);
      originals[masked] = original ? original : value;
      for (Id other : paddedClassesOf(value))
        states[{masked, other}] = stateOf(value, other);
      states[{masked, id}] = Padding::Zero;
      masks[{value, id}] = masked;
    }
    operand.set(masked);
    return success();
  }

  Program &program;
  const Analysis &analysis;
  const DimensionClasses &classes;
  const PaddedSizes &sizes;
  const llvm::DenseSet<Id> &sequence;
  bool inOrder;
  int64_t ignoreIndex;
  llvm::DenseMap<std::pair<Value, Id>, Padding> states;
  llvm::DenseMap<std::pair<Value, Id>, Value> masks;
  llvm::DenseMap<Value, Value> originals; ///< of masked values
};

} // namespace

LogicalResult nd::maskPadding(Program &program, const Analysis &analysis, const PaddedSizes &sizes,
                              const llvm::DenseSet<Id> &sequence, bool inOrder) {
  return sizes.empty() ? success() : Masks(program, analysis, sizes, sequence, inOrder).run();
}
