//===- RingHops.h - When keys and values go around --------------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The hop of a ring that brings the keys and values of the next step stands directly before the attention of this step,
// so that it is hidden behind it, and no more than two shards are held. Keys and values of one step then stand side by
// side, and become one collective when the program is lowered.
//
//===----------------------------------------------------------------------===//

#ifndef ND_SCHEDULE_RINGHOPS_H
#define ND_SCHEDULE_RINGHOPS_H

#include "mlir/IR/Block.h"

namespace nd {

/// Moves hops of forward rings that stand earlier than that.
void placeRingHops(mlir::Block &block);

} // namespace nd

#endif // ND_SCHEDULE_RINGHOPS_H
