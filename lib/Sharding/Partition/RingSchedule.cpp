//===- RingSchedule.cpp - Which hops a ring of keys needs -----------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Partition/RingSchedule.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>

using namespace nd;
using llvm::ArrayRef;
using llvm::SmallVector;

namespace {

/// Indices [lo, hi) of the original sequence.
struct Interval {
  int64_t lo, hi;
};

/// What a shard holds.
SmallVector<Interval> intervalsOf(const RingSequence &sequence, int64_t shard) {
  int64_t first = shard * sequence.shardLength, last = first + sequence.shardLength;
  if (sequence.order.empty())
    return {{first, last}};
  int64_t size = sequence.shards * sequence.shardLength / static_cast<int64_t>(sequence.order.size());
  SmallVector<Interval> intervals;
  for (int64_t place = first; place < last;) {
    int64_t chunk = place / size, end = std::min((chunk + 1) * size, last);
    int64_t index = sequence.order[chunk] * size + place % size;
    intervals.push_back({index, index + end - place});
    place = end;
  }
  return intervals;
}

/// Whether any query of the one sees any key of the other: their distances are all integers from the smallest to the
/// largest, and visible are those in [0, window).
bool sees(const RingSequence &sequence, Interval queries, Interval keys) {
  if (sequence.valid != 0)
    keys.hi = std::min(keys.hi, sequence.valid);
  if (queries.lo >= queries.hi || keys.lo >= keys.hi)
    return false;
  int64_t smallest = queries.lo - (keys.hi - 1), largest = queries.hi - 1 - keys.lo;
  return (!sequence.causal || largest >= 0) && (sequence.window == 0 || smallest < sequence.window);
}

} // namespace

SmallVector<int64_t> nd::neededRingSteps(const RingSequence &sequence) {
  SmallVector<SmallVector<Interval>> shards;
  for (int64_t shard : llvm::seq(sequence.shards))
    shards.push_back(intervalsOf(sequence, shard));
  auto isNeeded = [&](int64_t step) {
    return llvm::any_of(llvm::seq(sequence.shards), [&](int64_t rank) {
      const auto &keys = shards[(rank - step + sequence.shards) % sequence.shards];
      return llvm::any_of(shards[rank], [&](Interval q) {
        return llvm::any_of(keys, [&](Interval k) { return sees(sequence, q, k); });
      });
    });
  };
  SmallVector<int64_t> steps = {0};
  for (int64_t step : llvm::seq<int64_t>(1, sequence.shards))
    if (isNeeded(step))
      steps.push_back(step);
  return steps;
}
