//===- ParameterUses.cpp - How parameters travel --------------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "ParameterUses.h"
#include "Collectives.h"
#include "nd/Dialect/ND/IR/Copies.h"
#include "nd/Dialect/ND/IR/Names.h"

using namespace mlir;
using namespace nd;

namespace {

/// Operations through which a tensor stays the same parameter, or the same gradient.
bool keepsTensor(Operation *op) {
  return isa<ReshapeOp, TransposeOp, SliceOp, PadOp, AccumulateOp, SumCopiesOp, MakeCopiesOp, arith::TruncFOp,
             arith::ExtFOp>(op);
}

std::string describe(Operation *op, MeshOp mesh) {
  std::string group = mesh.getGroupLabel(op->getAttrOfType<ArrayAttr>("axes"));
  return (op->getName().stripDialect() + " over " + group).str();
}

/// Where several tensors travel in one collective, results go with the operands at the same place.
void followForward(Value value, MeshOp mesh, llvm::SmallPtrSetImpl<Operation *> &seen, ParameterUse &use) {
  for (OpOperand &operand : value.getUses()) {
    Operation *op = operand.getOwner();
    if (isCollective(op)) {
      if (seen.insert(op).second)
        use.gathers.push_back(describe(op, mesh));
      followForward(op->getResult(operand.getOperandNumber()), mesh, seen, use);
    } else if (keepsTensor(op)) {
      followForward(op->getResult(0), mesh, seen, use);
    }
  }
}

void followBackward(Value value, MeshOp mesh, llvm::SmallPtrSetImpl<Operation *> &seen, ParameterUse &use) {
  auto result = dyn_cast<OpResult>(value);
  if (!result)
    return;
  Operation *op = result.getOwner();
  if (isCollective(op)) {
    if (!seen.insert(op).second)
      return;
    followBackward(op->getOperand(result.getResultNumber()), mesh, seen, use);
    use.reductions.push_back(describe(op, mesh));
  } else if (keepsTensor(op)) {
    followBackward(op->getOperand(0), mesh, seen, use);
  }
}

} // namespace

llvm::StringMap<ParameterUse> nd::findParameterUses(func::FuncOp function, MeshOp mesh) {
  llvm::StringMap<ParameterUse> uses;
  if (!mesh)
    return uses;
  for (BlockArgument argument : function.getArguments())
    if (names::argKind(function, argument.getArgNumber()) == names::kind::kWeight) {
      llvm::SmallPtrSet<Operation *, 8> seen;
      followForward(argument, mesh, seen, uses[names::argName(function, argument.getArgNumber())]);
    }
  function.walk([&](Operation *op) {
    if (!isa<AdamWOp, SgdOp>(op))
      return;
    // Operands of both: the weight, then its gradient.
    if (auto weight = dyn_cast<BlockArgument>(op->getOperand(0)); weight && weight.getOwner()->isEntryBlock()) {
      llvm::SmallPtrSet<Operation *, 8> seen;
      followBackward(op->getOperand(1), mesh, seen, uses[names::argName(function, weight.getArgNumber())]);
    }
  });
  return uses;
}
