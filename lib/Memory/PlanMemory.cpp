//===- PlanMemory.cpp - Gives every buffer its offset ----------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Staging.h"
#include "nd/Memory/Lifetimes.h"
#include "nd/Memory/Passes.h"
#include "nd/Runtime/Core/ABI.h"

using namespace mlir;
using namespace nd;

namespace nd {
#define GEN_PASS_DEF_RTPLANMEMORY
#include "nd/Memory/Passes.h.inc"
} // namespace nd

namespace {

void setOffset(Operation *root, int64_t offset) {
  IntegerAttr attribute = Builder(root->getContext()).getI64IntegerAttr(offset);
  if (auto tensor = dyn_cast<rt::TensorOp>(root))
    tensor.setOffsetAttr(attribute);
  else
    cast<rt::BufferOp>(root).setOffsetAttr(attribute);
}

void planMemory(rt::ProgramOp program) {
  ProgramLifetimes memory(program);
  int64_t fixed = 0, fixedExact = 0;
  for (rt::TensorOp tensor : memory.getFixed()) {
    setOffset(tensor, fixed);
    int64_t bytes = rt::getBytes(tensor.getBuffer().getType());
    fixedExact += bytes;
    fixed += llvm::alignTo(bytes, ND_ALIGNMENT);
  }
  SmallVector<Lifetime> lifetimes = llvm::map_to_vector(memory.getShared(), [](auto &entry) { return entry.second; });
  ArenaPlan plan = planArena(lifetimes, ND_ALIGNMENT);
  for (auto [entry, offset] : llvm::zip_equal(memory.getShared(), plan.offsets))
    setOffset(entry.first, fixed + offset);
  Builder builder(program.getContext());
  int64_t staging = getStagingBytes(program);
  program.setArenaBytesAttr(builder.getI64IntegerAttr(fixed + plan.bytes + staging));
  program.setPeakLiveBytesAttr(builder.getI64IntegerAttr(fixedExact + plan.peakBytes + staging));
  if (staging)
    program.setStagingBytesAttr(builder.getI64IntegerAttr(staging));
  program.setFixedBytesAttr(builder.getI64IntegerAttr(fixed));
}

struct PlanMemory : nd::impl::RTPlanMemoryBase<PlanMemory> {
  void runOnOperation() override { planMemory(getOperation()); }
};

} // namespace
