//===- Memory.cpp - Which bytes a buffer is --------------------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "nd/Dialect/RT/IR/Memory.h"

using namespace mlir;
using namespace nd;
using namespace nd::rt;

Memory rt::getMemory(Value buffer) {
  auto type = cast<MemRefType>(buffer.getType());
  Operation *root = getRoot(buffer).getDefiningOp();
  int64_t element = getElementBytes(type.getElementType());
  Memory memory{root, getLayout(type).offset * element, getExtent(type) * element};
  if (isa<BlockArgument>(getBase(buffer)))
    memory = {root, 0, getBytes(cast<MemRefType>(root->getResult(0).getType()))};
  auto offset = root->getAttrOfType<IntegerAttr>("offset");
  if (!offset)
    return memory;
  return {nullptr, offset.getInt() + memory.begin, offset.getInt() + memory.end};
}

/// Whether one of the effects is of this kind and on the operand.
template <typename Kind> static bool hasEffect(ArrayRef<MemoryEffects::EffectInstance> effects, OpOperand &operand) {
  return llvm::any_of(effects, [&](const MemoryEffects::EffectInstance &effect) {
    return isa<Kind>(effect.getEffect()) && effect.getEffectValue<OpOperand *>() == &operand;
  });
}

Accesses::Accesses(Operation *op) {
  auto interface = dyn_cast<MemoryEffectOpInterface>(op);
  SmallVector<MemoryEffects::EffectInstance> effects;
  if (interface)
    interface.getEffects(effects);
  for (OpOperand &operand : op->getOpOperands()) {
    if (!isa<MemRefType>(operand.get().getType()))
      continue;
    if (!interface || hasEffect<MemoryEffects::Read>(effects, operand))
      read.push_back(operand.get());
    if (!interface || hasEffect<MemoryEffects::Write>(effects, operand))
      written.push_back(operand.get());
  }
}
