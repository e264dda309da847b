//===- RingSchedule.h - Which hops a ring of keys needs ---------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// At step j of a ring, the rank of coordinate r attends to the keys of rank (r - j) mod c. A step is needed when some
// rank has a query that sees one of those keys by position: all ranks run one program, so what one needs, all make.
//
//   c = 4, causal, no window                 0 1 2 3
//   c = 4, causal, window of one shard       0 1          with chunks in zig-zag: 0 1 3
//
//===----------------------------------------------------------------------===//

#ifndef ND_LIB_SHARDING_PARTITION_RINGSCHEDULE_H
#define ND_LIB_SHARDING_PARTITION_RINGSCHEDULE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include <cstdint>
#include <optional>

namespace nd {

/// A sequence in shards, and what its queries see of it by position.
struct RingSequence {
  int64_t shards, shardLength;
  llvm::ArrayRef<int64_t> order; ///< chunks in the order of storage; empty: as they are
  bool causal;
  int64_t window; ///< 0: none
  int64_t valid;  ///< keys of this index and above are invisible; 0: none
};

/// The steps that are needed, ascending. Step 0, a rank's own keys, always is.
llvm::SmallVector<int64_t> neededRingSteps(const RingSequence &sequence);

/// Those of nd.attention or nd.attention_grad on a shard of the keys.
template <typename AttentionLike> llvm::SmallVector<int64_t> neededRingSteps(AttentionLike op) {
  bool byIndex = !op.getPositions(); // which are data: with them any query may see any key
  std::optional<llvm::ArrayRef<int64_t>> order = op.getOrder();
  return neededRingSteps(RingSequence{static_cast<int64_t>(op.getKeyShards()), op.getKey().getType().getDimSize(2),
                                      order ? *order : llvm::ArrayRef<int64_t>(), byIndex && op.getCausal(),
                                      byIndex ? static_cast<int64_t>(op.getWindow()) : 0,
                                      static_cast<int64_t>(op.getValid())});
}

} // namespace nd

#endif // ND_LIB_SHARDING_PARTITION_RINGSCHEDULE_H
