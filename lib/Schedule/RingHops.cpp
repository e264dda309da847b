//===- RingHops.cpp - When keys and values go around ----------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "nd/Schedule/RingHops.h"
#include "nd/Dialect/ND/IR/ND.h"

using namespace mlir;
using namespace nd;

/// The attention that runs while the hop is under way: the reader of what the hop brings merges with its result.
static AttentionOp attentionMeanwhile(PermuteOp hop) {
  for (OpOperand &use : hop.getResult().getUses())
    if (auto reader = dyn_cast<AttentionOp>(use.getOwner()); reader && reader.getCarryResult())
      if (use.get() == reader.getKey() || use.get() == reader.getValue())
        return reader.getCarryResult().getDefiningOp<AttentionOp>();
  return {};
}

void nd::placeRingHops(Block &block) {
  SmallVector<PermuteOp> hops(block.getOps<PermuteOp>());
  // The last hop of a ring reads what the one before it brings, so it moves first.
  for (PermuteOp hop : llvm::reverse(hops)) {
    AttentionOp meanwhile = attentionMeanwhile(hop);
    if (!meanwhile || meanwhile->getBlock() != &block || !hop->isBeforeInBlock(meanwhile))
      continue;
    if (llvm::all_of(hop->getUsers(),
                     [&](Operation *user) { return user->getBlock() != &block || !user->isBeforeInBlock(meanwhile); }))
      hop->moveBefore(meanwhile);
  }
}
