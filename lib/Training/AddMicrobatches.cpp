//===- AddMicrobatches.cpp - Several microbatches in a step ---------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "StepFunction.h"
#include "mlir/IR/IRMapping.h"
#include "nd/Dialect/ND/IR/Builders.h"
#include "nd/Dialect/ND/IR/Names.h"
#include "nd/Training/Passes.h"
#include "llvm/ADT/DenseMap.h"

namespace nd {
#define GEN_PASS_DEF_ADDMICROBATCHES
#include "nd/Training/Passes.h.inc"
} // namespace nd

using namespace mlir;
using namespace nd;

namespace {

SmallVector<int64_t> prefixed(int64_t count, ArrayRef<int64_t> shape) {
  SmallVector<int64_t> result = {count};
  llvm::append_range(result, shape);
  return result;
}

SmallVector<int64_t> shifted(ArrayRef<int64_t> dims) {
  return llvm::map_to_vector(dims, [](int64_t dim) { return dim + 1; });
}

/// Computes values of one microbatch for all of them at once, with a leading dimension of microbatches.
class Lifting {
public:
  Lifting(OpBuilder &builder, int64_t count) : builder(builder), count(count) {}

  /// The sum of `value` over all microbatches; fails, with an error, where an operation cannot be lifted.
  FailureOr<Value> sum(Value value) {
    if (auto reduce = value.getDefiningOp<ReduceOp>(); reduce && reduce.getKind() == ReductionKind::sum) {
      FailureOr<Value> all = lift(reduce.getInput());
      if (failed(all))
        return failure();
      SmallVector<int64_t> dims = prefixed(0, shifted(reduce.getDims()));
      return reduceSum(builder, value.getLoc(), *all, dims);
    }
    if (Operation *op = value.getDefiningOp(); op && isa<ReshapeOp, arith::ExtUIOp, arith::ExtSIOp>(op)) {
      FailureOr<Value> operand = sum(op->getOperand(0));
      // A number of one bit has no sum of that width.
      if (failed(operand) || getElementTypeOrSelf(op->getOperand(0)).isInteger(1))
        return failed(operand) ? FailureOr<Value>() : sumOfLifted(value);
      IRMapping mapping;
      mapping.map(op->getOperand(0), *operand);
      return builder.clone(*op, mapping)->getResult(0);
    }
    return sumOfLifted(value);
  }

private:
  FailureOr<Value> sumOfLifted(Value value) {
    FailureOr<Value> all = lift(value);
    if (failed(all))
      return failure();
    return reduceSum(builder, value.getLoc(), *all, {0});
  }

  FailureOr<Value> lift(Value value) {
    if (Value known = lifted.lookup(value))
      return known;
    FailureOr<Value> result = build(value);
    if (succeeded(result))
      lifted[value] = *result;
    return result;
  }

  FailureOr<Value> build(Value value) {
    Operation *op = value.getDefiningOp();
    RankedTensorType type = tensorTypeOf(value);
    SmallVector<int64_t> shape = prefixed(count, type.getShape());
    if (auto microbatch = dyn_cast_or_null<MicrobatchOp>(op))
      return Value(microbatch.getInput());
    if (!op || op->getNumOperands() == 0)
      return broadcastTo(builder, value.getLoc(), value, shape, sequence(type.getRank(), 1));
    SmallVector<Value> operands;
    for (Value operand : op->getOperands()) {
      FailureOr<Value> all = lift(operand);
      if (failed(all))
        return failure();
      operands.push_back(*all);
    }
    Location loc = op->getLoc();
    if (op->hasTrait<OpTrait::Elementwise>() && op->getNumResults() == 1) {
      OperationState state(loc, op->getName(), operands, withShape(type, shape), op->getAttrs());
      return builder.create(state)->getResult(0);
    }
    return llvm::TypeSwitch<Operation *, FailureOr<Value>>(op)
        .Case([&](ReshapeOp) { return reshape(builder, loc, operands[0], shape); })
        .Case([&](BroadcastOp broadcast) {
          return broadcastTo(builder, loc, operands[0], shape, prefixed(0, shifted(broadcast.getDims())));
        })
        .Case([&](ReduceOp op) { return reduce(builder, loc, op.getKind(), operands[0], shifted(op.getDims())); })
        .Case([&](TransposeOp op) {
          return transpose(builder, loc, operands[0], prefixed(0, shifted(op.getPermutation())));
        })
        .Default([](Operation *other) -> FailureOr<Value> {
          return other->emitOpError()
                 << "is part of how the loss counts its tokens, and cannot be computed for all microbatches at once; "
                    "count tokens with elementwise operations, sums and reshapes of the inputs, or use "
                    "--microbatches=1";
        });
  }

  OpBuilder &builder;
  int64_t count;
  llvm::DenseMap<Value, Value> lifted;
};

struct AddMicrobatches : nd::impl::AddMicrobatchesBase<AddMicrobatches> {
  using AddMicrobatchesBase::AddMicrobatchesBase;

  void runOnOperation() override {
    FailureOr<func::FuncOp> function = getForward(getOperation());
    if (failed(function) || failed(build(*function)))
      signalPassFailure();
  }

  LogicalResult build(func::FuncOp function) {
    if (count < 1)
      return function.emitOpError() << "cannot train on " << count << " microbatches; --microbatches starts at 1";
    if (count == 1)
      return success();
    std::optional<unsigned> sum = findResultOfKind(function, names::kind::kLossSum);
    std::optional<unsigned> tokens = findResultOfKind(function, names::kind::kLossCount);
    if (!sum || !tokens)
      return function.emitOpError()
             << "must return results of kinds 'loss_sum' and 'loss_count'; run nd-add-loss first";
    addInputDimension(function);
    func::ReturnOp terminator = getReturn(function);
    OpBuilder builder(terminator);
    FailureOr<Value> total = Lifting(builder, count).sum(terminator.getOperand(*tokens));
    if (failed(total))
      return failure();
    terminator->setOperand(*tokens, *total);
    function.setType(builder.getFunctionType(function.getBody().getArgumentTypes(), terminator.getOperandTypes()));
    return success();
  }

  void addInputDimension(func::FuncOp function) {
    Block &block = function.getBody().front();
    OpBuilder builder = OpBuilder::atBlockBegin(&block);
    for (BlockArgument argument : block.getArguments()) {
      if (names::argKind(function, argument.getArgNumber()) != names::kind::kInput)
        continue;
      RankedTensorType type = tensorTypeOf(argument);
      argument.setType(withShape(type, prefixed(count, type.getShape())));
      auto part = MicrobatchOp::create(builder, argument.getLoc(), type, argument);
      argument.replaceAllUsesExcept(part, part);
    }
  }
};

} // namespace
