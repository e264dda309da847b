//===- PaddingMasks.cpp - What padding holds, and where it must not count -===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Padding/PaddingMasks.h"
#include "Padding/PaddingStates.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "nd/Dialect/ND/IR/Builders.h"
#include "nd/Dialect/ND/IR/Names.h"

using namespace mlir;
using namespace nd;

namespace {

using Id = DimensionClasses::Id;
using Place = PaddingStates::Place;

class Masks {
public:
  Masks(Program &program, const Analysis &analysis, const PaddedSizes &sizes, const llvm::DenseSet<Id> &sequence,
        DenseI64ArrayAttr order)
      : program(program), analysis(analysis), classes(analysis.getClasses()), sizes(sizes), sequence(sequence),
        order(order), states(program, analysis, sizes, sequence) {}

  LogicalResult run() {
    for (const Analysis::Step &step : analysis.getSteps()) {
      if (failed(maskOperands(step)))
        return failure();
      states.transfer(step);
      if (failed(leavePaddingOut(step)))
        return failure();
    }
    for (OpOperand &operand : program.getReturn()->getOpOperands()) {
      StringRef kind = names::resultKind(program.function, operand.getOperandNumber());
      if (kind != names::kind::kOutput && kind != names::kind::kLogits)
        for (Place place : states.placesOf(operand.get()))
          if (failed(require(operand, place, Padding::Zero)))
            return failure();
    }
    return success();
  }

private:
  /// Sets the padding of operands to what does not count where it would.
  LogicalResult maskOperands(const Analysis::Step &step) {
    Operation *op = step.op;
    if (isa<AdamWOp, SgdOp>(op)) {
      for (Place place : states.placesOf(op->getOperand(1)))
        if (failed(require(op->getOpOperand(1), place, Padding::Zero)))
          return failure();
      return success();
    }
    if (failed(maskIndices(op)))
      return failure();
    if (auto attention = dyn_cast<AttentionOp>(op); attention && failed(padPlaces(attention)))
      return failure();
    if (auto gradient = dyn_cast<AttentionGradOp>(op);
        gradient && (failed(padPlaces(gradient)) || failed(maskQueries(gradient))))
      return failure();
    for (auto [index, factor] : llvm::enumerate(step.rule.factors)) {
      if (factor.kind != FactorKind::Reduction || isa<TakeOp>(op)) // no index reaches the padding of a table
        continue;
      for (Id id : classes.getFactor(op, index)) {
        if (!sizes.contains(id))
          continue;
        if (isa<DotGeneralOp>(op)) {
          if (failed(maskProduct(step, index, id)))
            return failure();
          continue;
        }
        unsigned summed = isa<ScatterAddOp, ScatterAddAlongOp>(op) ? 1 : 0;
        if (factor.reduction == ReductionKind::min)
          return op->emitError() << "takes the minimum over a dimension that has to be padded from "
                                 << classes.getSize(id) << " to " << sizes.lookup(id)
                                 << "; choose a mesh that divides it";
        Padding neutral = factor.reduction == ReductionKind::max ? Padding::NegInf : Padding::Zero;
        if (failed(require(op->getOpOperand(summed), *states.find(step, summed, index, id), neutral)))
          return failure();
      }
    }
    return success();
  }

  /// Gradients of keys and values are sums over queries: those of padding have no gradient, whatever the loss is.
  LogicalResult maskQueries(AttentionGradOp gradient) {
    OpOperand &resultGrad = gradient.getResultGradMutable();
    for (Place place : states.placesOf(resultGrad.get()))
      if (place.dim == 2 && failed(require(resultGrad, place, Padding::Zero)))
        return failure();
    return success();
  }

  /// What an attention has along the sequence and no input gives (documents that are computed) is padded like the
  /// sequence. Keys in padding are invisible, so any number does.
  template <typename AttentionLike> LogicalResult padPlaces(AttentionLike attention) {
    int64_t queries = attention.getQuery().getType().getDimSize(2), keys = attention.getKey().getType().getDimSize(2);
    auto pad = [&](MutableOperandRange range, int64_t dim, int64_t size) -> LogicalResult {
      if (range.empty())
        return success();
      OpOperand &operand = range[0];
      auto type = tensorTypeOf(operand.get());
      int64_t own = type.getDimSize(dim);
      if (own == 1 || own == size)
        return success();
      if (order)
        return attention.emitError() << "has " << operand.get().getType() << " along a sequence of " << own
                                     << " that is padded to " << size
                                     << " and not stored in order; import with --seq=" << size
                                     << ", or choose a mesh that divides it";
      OpBuilder builder(attention);
      operand.set(padAtEnd(builder, attention.getLoc(), operand.get(), dim, size));
      return success();
    };
    return success(succeeded(pad(attention.getPositionsMutable(), 1, queries)) &&
                   succeeded(pad(attention.getDocumentsMutable(), 1, keys)) &&
                   succeeded(pad(attention.getKeyPaddingMutable(), 1, keys)) &&
                   succeeded(pad(attention.getMaskMutable(), 2, queries)) &&
                   succeeded(pad(attention.getMaskMutable(), 3, keys)));
  }

  static Value padAtEnd(OpBuilder &builder, Location loc, Value value, int64_t dim, int64_t size) {
    RankedTensorType type = tensorTypeOf(value);
    SmallVector<int64_t> shape(type.getShape()), none(shape.size(), 0), high = none;
    high[dim] = size - shape[dim];
    shape[dim] = size;
    Value zero = splat(builder, loc, type.getElementType(), {}, 0.0);
    return PadOp::create(builder, loc, withShape(type, shape), value, zero, none, high, none);
  }

  /// What is computed from places may point behind the end of a table.
  LogicalResult maskIndices(Operation *op) {
    if (!isa<TakeOp, ScatterAddOp>(op))
      return success();
    OpOperand &indices = op->getOpOperand(isa<TakeOp>(op) ? 1 : 0);
    for (Place place : states.placesOf(indices.get()))
      if (states.get(indices.get(), place) == Padding::Index && failed(require(indices, place, Padding::Zero)))
        return failure();
    return success();
  }

  /// One factor of each product that is summed up has to be zero, and the other finite.
  LogicalResult maskProduct(const Analysis::Step &step, int64_t factor, Id id) {
    Padding left = states.along(step, 0, factor, id), right = states.along(step, 1, factor, id);
    auto mask = [&](unsigned operand) {
      return require(step.op->getOpOperand(operand), *states.find(step, operand, factor, id), Padding::Zero);
    };
    if (left == Padding::Wild && failed(mask(0)))
      return failure();
    if (right == Padding::Wild && failed(mask(1)))
      return failure();
    bool isNeutral = left == Padding::Zero || right == Padding::Zero || left == Padding::Wild || right == Padding::Wild;
    return isNeutral ? success() : mask(0);
  }

  /// Whether a class is stored in another order, its padding somewhere in the middle.
  bool isReordered(Id id) const { return order && sequence.contains(id); }

  /// Sizes of a value with and without the padding of some classes. Its dimensions are cut in front of these, so that
  /// their padding is at the end of what they are a part of.
  struct Cut {
    SmallVector<int64_t> padded, logical;
    SmallVector<int64_t> dims; ///< which dimension of the value each is a part of

    bool isPadded() const { return padded != logical; }

    /// The shape of the value, with padding or without.
    SmallVector<int64_t> join(ArrayRef<int64_t> parts) const {
      SmallVector<int64_t> shape;
      for (auto [dim, size] : llvm::zip_equal(dims, parts))
        if (dim == static_cast<int64_t>(shape.size()))
          shape.push_back(size);
        else
          shape.back() *= size;
      return shape;
    }
  };

  Cut cut(Value value, function_ref<bool(Place)> isLeftOut) {
    Cut result;
    auto add = [&](int64_t dim, int64_t padded, int64_t logical, bool isNew) {
      if (isNew) {
        result.padded.push_back(padded);
        result.logical.push_back(logical);
        result.dims.push_back(dim);
      } else {
        result.padded.back() *= padded;
        result.logical.back() *= logical;
      }
    };
    for (auto [dim, size] : llvm::enumerate(tensorTypeOf(value).getShape())) {
      DimensionClasses::Ids ids = states.classesOf(value, dim);
      if (ids.empty())
        add(dim, size, size, true);
      for (auto [index, id] : llvm::enumerate(ids)) {
        int64_t logical = classes.getSize(id), padded = sizes.contains(id) ? sizes.lookup(id) : logical;
        bool isHere = sizes.contains(id) && isLeftOut({static_cast<int64_t>(dim), id});
        add(dim, padded, isHere ? logical : padded, index == 0 || isHere);
      }
    }
    return result;
  }

  InFlightDiagnostic complain(Operation *op, Id id) {
    InFlightDiagnostic diagnostic = op->emitError();
    diagnostic << "'" << op->getName() << "' would count the padding of a dimension of " << classes.getSize(id)
               << " that is padded to " << sizes.lookup(id) << ", and where it is stored it cannot be ";
    return diagnostic;
  }

  /// Makes the padding of an operand zero, or minus infinity.
  LogicalResult require(OpOperand &operand, Place place, Padding wanted) {
    Value value = operand.get();
    if (states.get(value, place) == wanted)
      return success();
    Operation *op = operand.getOwner();
    auto floatType = dyn_cast<FloatType>(tensorTypeOf(value).getElementType());
    if (wanted == Padding::NegInf && !floatType)
      return complain(op, place.id) << "set to zero; choose a mesh that divides it";
    auto [it, inserted] = masks.try_emplace({value, place.dim, place.id, static_cast<int>(wanted)});
    if (inserted) {
      OpBuilder builder(op);
      builder.setInsertionPointAfterValue(value);
      Location loc = op->getLoc();
      Value isReal = isLogical(builder, loc, value, place);
      double number = wanted == Padding::NegInf ? -std::numeric_limits<double>::infinity() : 0.0;
      Value neutral = floatType ? splatLike(builder, loc, value, number) : intSplatLike(builder, loc, value, 0);
      it->second = select(builder, loc, isReal, value, neutral);
      states.addCopy(it->second, value);
      states.set(it->second, place, wanted);
    }
    operand.set(it->second);
    return success();
  }

  /// Which elements are not padding of a class.
  Value isLogical(OpBuilder &builder, Location loc, Value value, Place place) {
    Cut parts = cut(value, [&](Place other) { return other.dim == place.dim && other.id == place.id; });
    Value all;
    for (auto [dim, size] : llvm::enumerate(parts.logical)) {
      if (size == parts.padded[dim])
        continue;
      Value index = places(builder, loc, parts.padded, dim, isReordered(place.id));
      Value isReal = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, index,
                                           intSplatLike(builder, loc, index, size));
      all = all ? arith::AndIOp::create(builder, loc, all, isReal).getResult() : isReal;
    }
    return reshape(builder, loc, all, tensorTypeOf(value).getShape());
  }

  /// The number of each element along a dimension, in the order that is not the stored one.
  Value places(OpBuilder &builder, Location loc, ArrayRef<int64_t> shape, int64_t dim, bool isReordered) {
    if (!isReordered)
      return iota(builder, loc, builder.getI64Type(), shape, dim);
    Value stored = iota(builder, loc, builder.getI64Type(), {shape[dim]}, 0);
    Value size = intSplatLike(builder, loc, stored, shape[dim] / order.size());
    auto table = RankedTensorType::get({order.size()}, builder.getI64Type());
    Value chunks = arith::ConstantOp::create(builder, loc, DenseElementsAttr::get(table, order.asArrayRef()));
    Value chunk = TakeOp::create(builder, loc, tensorTypeOf(stored), chunks,
                                 arith::DivSIOp::create(builder, loc, stored, size), IntegerAttr(), ArrayAttr());
    Value first = arith::MulIOp::create(builder, loc, chunk, size);
    Value number = arith::AddIOp::create(builder, loc, first, arith::RemSIOp::create(builder, loc, stored, size));
    return broadcastTo(builder, loc, number, shape, {dim});
  }

  /// An operation that needs the whole of a dimension gets it without padding; what it makes is padded with zeros.
  LogicalResult leavePaddingOut(const Analysis::Step &step) {
    Operation *op = step.op;
    if (isa<AttentionOp, AttentionGradOp>(op)) // they know how many keys are real
      return success();
    for (OpOperand &operand : op->getOpOperands()) {
      auto isWhole = [&, &dims = step.rule.operands[operand.getOperandNumber()]](Place place) {
        return needsWhole(analysis, step, dims[place.dim], place.id);
      };
      FailureOr<Cut> parts = cutWhole(op, operand.get(), isWhole);
      if (failed(parts))
        return failure();
      if (parts->isPadded())
        takeOutPadding(operand, *parts);
    }
    for (OpResult result : op->getResults()) {
      auto isWhole = [&, &dims = step.rule.results[result.getResultNumber()]](Place place) {
        return needsWhole(analysis, step, dims[place.dim], place.id);
      };
      FailureOr<Cut> parts = cutWhole(op, result, isWhole);
      if (failed(parts))
        return failure();
      if (!parts->isPadded())
        continue;
      Value padded = padResult(result, *parts);
      for (Place place : llvm::make_filter_range(states.placesOf(result), isWhole))
        states.set(padded, place, Padding::Zero);
    }
    return success();
  }

  /// Fails where padding that has to be left out is stored in the middle.
  FailureOr<Cut> cutWhole(Operation *op, Value value, function_ref<bool(Place)> isWhole) {
    for (Place place : states.placesOf(value))
      if (isWhole(place) && isReordered(place.id))
        return complain(op, place.id) << "left out; choose a mesh that divides it";
    return cut(value, isWhole);
  }

  void takeOutPadding(OpOperand &operand, const Cut &parts) {
    OpBuilder builder(operand.getOwner());
    Location loc = operand.getOwner()->getLoc();
    Value whole = reshape(builder, loc, operand.get(), parts.padded);
    for (auto [dim, size] : llvm::enumerate(parts.logical))
      whole = slice(builder, loc, whole, dim, 0, size);
    whole = reshape(builder, loc, whole, parts.join(parts.logical));
    states.addCopy(whole, operand.get());
    operand.set(whole);
  }

  /// What is the result from now on.
  Value padResult(OpResult result, const Cut &parts) {
    OpBuilder builder(result.getContext());
    builder.setInsertionPointAfterValue(result);
    Location loc = result.getLoc();
    RankedTensorType type = tensorTypeOf(result);
    SmallVector<int64_t> none(parts.padded.size(), 0), high;
    for (auto [padded, logical] : llvm::zip_equal(parts.padded, parts.logical))
      high.push_back(padded - logical);
    result.setType(withShape(type, parts.join(parts.logical)));
    SmallVector<OpOperand *> uses;
    for (OpOperand &use : result.getUses())
      uses.push_back(&use);
    Value zero = splat(builder, loc, type.getElementType(), {}, 0.0);
    Value padded = PadOp::create(builder, loc, withShape(type, parts.padded),
                                 reshape(builder, loc, result, parts.logical), zero, none, high, none);
    padded = reshape(builder, loc, padded, parts.join(parts.padded));
    for (OpOperand *use : uses)
      use->set(padded);
    states.addCopy(padded, result);
    return padded;
  }

  Program &program;
  const Analysis &analysis;
  const DimensionClasses &classes;
  const PaddedSizes &sizes;
  const llvm::DenseSet<Id> &sequence;
  DenseI64ArrayAttr order;
  PaddingStates states;
  llvm::DenseMap<std::tuple<Value, int64_t, Id, int>, Value> masks;
};

} // namespace

LogicalResult nd::maskPadding(Program &program, const Analysis &analysis, const PaddedSizes &sizes,
                              const llvm::DenseSet<Id> &sequence, DenseI64ArrayAttr order) {
  return sizes.empty() ? success() : Masks(program, analysis, sizes, sequence, order).run();
}
