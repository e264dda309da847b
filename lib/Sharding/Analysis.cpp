//===- Analysis.cpp - What plans read of a program ------------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Analysis.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "nd/Dialect/ND/IR/Names.h"
#include "nd/Dialect/ND/IR/Signature.h"

using namespace mlir;
using namespace nd;

FailureOr<Analysis> Analysis::get(Program &program) {
  Analysis analysis;
  analysis.steps.reserve(program.getBody().getOperations().size());
  for (Operation &op : program.getBody().without_terminator()) {
    FailureOr<ShardingRule> rule = getShardingRule(&op);
    if (failed(rule))
      return failure();
    analysis.classes.add(&op, *rule);
    analysis.steps.push_back({&op, std::move(*rule)});
  }
  func::FuncOp function = program.function;
  SignatureIndex signature(function);
  for (unsigned index : llvm::seq(function.getNumArguments())) {
    StringRef kind = names::argKind(function, index), name = names::argName(function, index);
    std::optional<unsigned> result = kind.empty() || name.empty() ? std::nullopt : signature.findResult(kind, name);
    if (!result)
      continue;
    Value updated = program.getReturn()->getOperand(*result);
    if (updated.getType() == function.getArgument(index).getType())
      analysis.classes.tie(function.getArgument(index), updated);
  }
  analysis.findPhases(program);
  return analysis;
}

void Analysis::findPhases(Program &program) {
  std::optional<unsigned> loss = names::findResult(program.function, names::kind::kMetric, names::name::kLoss);
  SmallVector<Operation *> worklist;
  auto reach = [&](Operation *op) {
    if (op && forward.insert(op).second)
      worklist.push_back(op);
  };
  if (loss)
    reach(program.getReturn()->getOperand(*loss).getDefiningOp());
  else
    for (Step &step : steps)
      forward.insert(step.op);
  while (!worklist.empty())
    for (Value operand : worklist.pop_back_val()->getOperands())
      reach(operand.getDefiningOp());

  for (Step &step : steps) {
    if (isa<AdamWOp, SgdOp>(step.op)) {
      if (BlockArgument parameter = getWeightBehind(step.op->getOperand(0), program.function)) {
        gradients[step.op->getOperand(1)] = parameter;
        if (SumCopiesOp sum = getSumOfCopies(step.op->getOperand(1)))
          gradients[sum.getInput()] = parameter;
        updates[parameter] = step.op;
      }
      update.insert(step.op);
    }
  }
  for (Step &step : steps) {
    bool isBehind = llvm::any_of(step.op->getOperands(), [&](Value operand) {
      return gradients.contains(operand) || (operand.getDefiningOp() && update.contains(operand.getDefiningOp()));
    });
    if (isBehind)
      update.insert(step.op);
  }
}

SumCopiesOp nd::getSumOfCopies(Value value) {
  auto made = value.getDefiningOp<MakeCopiesOp>();
  return made ? made.getInput().getDefiningOp<SumCopiesOp>() : SumCopiesOp();
}

bool nd::isMaster(BlockArgument weight) {
  bool isUpdated = false, isRounded = false;
  for (OpOperand &use : weight.getUses()) {
    bool isUpdate = isa<AdamWOp, SgdOp>(use.getOwner()) && use.getOperandNumber() == 0;
    isUpdated |= isUpdate;
    isRounded |= isa<arith::TruncFOp>(use.getOwner());
    if (!isUpdate && !isa<arith::TruncFOp>(use.getOwner()))
      return false;
  }
  return isUpdated && isRounded;
}

BlockArgument nd::getWeightBehind(Value value, func::FuncOp function) {
  while (true) {
    if (auto argument = dyn_cast<BlockArgument>(value))
      return argument.getOwner() == &function.getBody().front() &&
                     names::argKind(function, argument.getArgNumber()) == names::kind::kWeight
                 ? argument
                 : BlockArgument();
    Operation *op = value.getDefiningOp();
    if (!isa<TransposeOp, ReshapeOp, BroadcastOp, SliceOp, PadOp, arith::TruncFOp, arith::ExtFOp>(op))
      return {};
    value = op->getOperand(0);
  }
}
