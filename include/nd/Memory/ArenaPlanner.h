//===- ArenaPlanner.h - Offsets of buffers by liveness ----------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_MEMORY_ARENAPLANNER_H
#define ND_MEMORY_ARENAPLANNER_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"

#include <cstdint>

namespace nd {

/// A buffer that must keep its contents from step `first` to step `last`, both included.
struct Lifetime {
  int64_t bytes = 0;
  int64_t first = 0, last = 0;

  bool overlaps(const Lifetime &other) const { return first <= other.last && other.first <= last; }
};

struct ArenaPlan {
  llvm::SmallVector<int64_t> offsets; ///< one per buffer, multiples of the alignment
  int64_t bytes = 0;                  ///< of the arena
  int64_t peakBytes = 0;              ///< the largest sum of bytes live at one time: a lower bound of every plan
};

/// Places buffers so that those alive at the same time do not overlap. Buffers are placed one after the other where
/// they fit, in several orders; while the best plan is more than `tolerance` above the peak, the buffer that makes it
/// so is placed earlier. Deterministic. Dynamic storage allocation is NP-hard: nothing promises the tolerance, tests
/// measure it.
ArenaPlan planArena(llvm::ArrayRef<Lifetime> buffers, int64_t alignment, double tolerance = 1.01);

} // namespace nd

#endif // ND_MEMORY_ARENAPLANNER_H
