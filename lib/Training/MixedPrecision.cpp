//===- MixedPrecision.cpp - bf16 compute on f32 weights -------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Each f32 value of the model has a native form, narrow (bf16) or wide (f32), in which it is in memory; the other form
// is a conversion of it. Invariants:
//  - A trainable weight is narrow, by one truncf on the argument itself: what FSDP gathers is that truncf's result.
//  - Products, norms, rotary embeddings, attention and gathers of weights are narrow, with f32 inside.
//  - Elementwise arithmetic, softmax and reductions are in f32. Their result is rounded, once and for all of its
//    readers, where a narrow operation reads it, and where it is a product with its bias; a chain of them is never
//    rounded in between.
//  - What no weight is part of (positions, rotary tables, masks) stays as it is.
//
//===----------------------------------------------------------------------===//

#include "StepFunction.h"
#include "mlir/IR/IRMapping.h"
#include "nd/Dialect/ND/IR/Builders.h"
#include "nd/Dialect/ND/IR/Names.h"
#include "nd/Training/Passes.h"

namespace nd {
#define GEN_PASS_DEF_MIXEDPRECISION
#include "nd/Training/Passes.h.inc"
} // namespace nd

using namespace mlir;
using namespace nd;

namespace {

bool isF32(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && type.getElementType().isF32();
}

/// Moves elements and computes nothing.
bool isMovement(Operation *op) {
  return isa<ReshapeOp, TransposeOp, SliceOp, BroadcastOp, ConcatOp, PadOp, DropoutOp>(op);
}

class Narrowing {
public:
  explicit Narrowing(func::FuncOp function) : function(function), block(function.getBody().front()) {}

  void run() {
    findComputed();
    findWanted();
    SmallVector<Operation *> before = llvm::map_to_vector(block, [](Operation &op) { return &op; });
    for (BlockArgument argument : block.getArguments())
      if (isF32(argument))
        forms[argument] = {{}, argument, names::isTrainableWeight(function, argument.getArgNumber())};
    for (Operation *op : before)
      rewrite(op);
    for (Operation *op : llvm::reverse(before))
      op->erase();
  }

private:
  struct Form {
    Value narrow, wide; ///< null until somebody reads it
    bool isNarrow;
  };

  /// Values that a weight is part of.
  void findComputed() {
    for (BlockArgument argument : block.getArguments())
      if (names::argKind(function, argument.getArgNumber()) == names::kind::kWeight)
        computed.insert(argument);
    for (Operation &op : block)
      if (llvm::any_of(op.getOperands(), [&](Value operand) { return computed.contains(operand); }))
        computed.insert(op.result_begin(), op.result_end());
  }

  /// Whether an operation reads an operand in bf16.
  bool readsNarrow(OpOperand &operand) const {
    Operation *op = operand.getOwner();
    if (op->getNumResults() == 0 || !computed.contains(op->getResult(0)))
      return false;
    if (isa<DotGeneralOp, LayerNormOp, RmsNormOp>(op))
      return true;
    if (isa<RopeOp>(op))
      return operand.getOperandNumber() == 0;
    if (auto attention = dyn_cast<AttentionOp>(op))
      return operand.get() != attention.getMask();
    return isMovement(op) && wanted.contains(op->getResult(0));
  }

  /// A product with its bias row: it is in memory, whoever reads it.
  bool isBiasedProduct(Operation *op) const {
    auto add = dyn_cast<arith::AddFOp>(op);
    if (!add || !isF32(add) || !computed.contains(add))
      return false;
    auto isProduct = [](Value value) { return value.getDefiningOp<DotGeneralOp>(); };
    auto isRow = [](Value value) { return value.getDefiningOp<BroadcastOp>(); };
    return (isProduct(add.getLhs()) && isRow(add.getRhs())) || (isProduct(add.getRhs()) && isRow(add.getLhs()));
  }

  void findWanted() {
    for (Operation &op : llvm::reverse(block)) {
      if (isBiasedProduct(&op))
        wanted.insert(op.getResult(0));
      for (OpOperand &operand : op.getOpOperands())
        if (isF32(operand.get()) && readsNarrow(operand))
          wanted.insert(operand.get());
    }
  }

  Value narrow(Value value, OpBuilder &builder) {
    Form &form = forms.find(value)->second;
    if (!form.narrow) {
      OpBuilder::InsertionGuard guard(builder);
      // Beside what it rounds, so that it is there for every reader; an argument's as late as possible.
      if (form.wide.getDefiningOp())
        builder.setInsertionPointAfterValue(form.wide);
      form.narrow = convertFloat(builder, value.getLoc(), form.wide, builder.getBF16Type());
    }
    return form.narrow;
  }

  Value wide(Value value, OpBuilder &builder) {
    Form &form = forms.find(value)->second;
    // A narrow weight is rounded for whoever reads it.
    Value &known = form.isNarrow && isa<BlockArgument>(value) ? widened[value] : form.wide;
    if (!known)
      known = convertFloat(builder, value.getLoc(), narrow(value, builder), builder.getF32Type());
    return known;
  }

  /// Clones with the operands that `isNarrow` names in bf16, other floats in f32.
  Operation *clone(Operation *op, OpBuilder &builder, llvm::function_ref<bool(OpOperand &)> isNarrow) {
    auto replacement = [&](OpOperand &operand) {
      Value value = operand.get();
      if (!forms.contains(value))
        return others.lookup_or(value, value);
      return operand.getOwner() == op && isNarrow(operand) ? narrow(value, builder) : wide(value, builder);
    };
    IRMapping nested;
    SmallVector<Value> operands;
    op->walk([&](Operation *inner) {
      for (OpOperand &operand : inner->getOpOperands())
        if (inner == op)
          operands.push_back(replacement(operand));
        else
          nested.map(operand.get(), replacement(operand));
    });
    Operation *copy = builder.clone(*op, nested);
    copy->setOperands(operands);
    return copy;
  }

  /// The operation's f32 results are now bf16, but for statistics.
  void setNarrow(Operation *op, Operation *copy) {
    auto type = cast<RankedTensorType>(copy->getResult(0).getType());
    copy->getResult(0).setType(type.clone(BFloat16Type::get(op->getContext())));
    forms[op->getResult(0)] = {copy->getResult(0), {}, true};
  }

  bool isNarrowMovement(Operation *op) {
    if (!isMovement(op) || !isF32(op->getResult(0)))
      return false;
    // Rounded for a narrow reader; else as it comes, but for rows that only f32 arithmetic reads.
    Value result = op->getResult(0);
    return (computed.contains(result) && wanted.contains(result)) ||
           (!isa<BroadcastOp, ConcatOp, PadOp>(op) && forms.find(op->getOperand(0))->second.isNarrow);
  }

  void rewrite(Operation *op) {
    OpBuilder builder(op);
    bool isComputed = op->getNumResults() > 0 && computed.contains(op->getResult(0)) && isF32(op->getResult(0));
    auto inSameForm = [&](OpOperand &operand) { return forms.find(operand.get())->second.isNarrow; };
    Operation *copy;
    if (isNarrowMovement(op)) {
      copy = clone(op, builder, [](OpOperand &) { return true; });
      setNarrow(op, copy);
    } else if (isComputed && isa<DotGeneralOp, LayerNormOp, RmsNormOp, RopeOp, AttentionOp>(op) &&
               isF32(op->getOperand(0))) {
      copy = clone(op, builder, [&](OpOperand &operand) { return readsNarrow(operand); });
      setNarrow(op, copy);
    } else if (auto take = dyn_cast<TakeOp>(op);
               take && isF32(take.getTable()) && forms.find(take.getTable())->second.isNarrow) {
      copy = clone(op, builder, [](OpOperand &) { return true; });
      setNarrow(op, copy);
    } else if (isa<SoftmaxCrossEntropyOp>(op)) {
      copy = clone(op, builder, inSameForm);
    } else {
      copy = clone(op, builder, [](OpOperand &) { return false; });
    }
    for (auto [old, now] : llvm::zip_equal(op->getResults(), copy->getResults())) {
      if (!isF32(old))
        others[old] = now;
      else if (!forms.contains(old))
        forms[old] = round(old, now, builder);
    }
  }

  /// The form of what f32 arithmetic has computed.
  Form round(Value old, Value now, OpBuilder &builder) {
    if (!computed.contains(old) || !wanted.contains(old))
      return {{}, now, false};
    return {convertFloat(builder, old.getLoc(), now, builder.getBF16Type()), {}, true};
  }

  func::FuncOp function;
  Block &block;
  DenseSet<Value> computed;
  DenseSet<Value> wanted; ///< f32 values that somebody reads in bf16
  DenseMap<Value, Form> forms;
  DenseMap<Value, Value> widened; ///< of weights
  DenseMap<Value, Value> others;  ///< what the values of other types have become
};

struct MixedPrecision : nd::impl::MixedPrecisionBase<MixedPrecision> {
  void runOnOperation() override {
    FailureOr<func::FuncOp> function = getForward(getOperation());
    if (failed(function))
      return signalPassFailure();
    Narrowing(*function).run();
  }
};

} // namespace
