//===- SharedMemory.h - The memory that the ranks of a job share -*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// One memfd, made by the launcher and handed to each rank: a control page that the launcher watches, then the
// transport's counters, then each rank's staging slots. It has no name in any file system, so nothing survives a kill.
//
//===----------------------------------------------------------------------===//

#ifndef ND_RUNTIME_CORE_SHAREDMEMORY_H
#define ND_RUNTIME_CORE_SHAREDMEMORY_H

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace nd::rt {

/// What a rank is doing: written by the rank, read by the launcher.
struct alignas(64) RankStatus {
  std::atomic<uint64_t> progress;  ///< rises with every operation
  std::atomic<int32_t> collective; ///< id of the collective it waits in, or -1
};

/// Stops the job: set by the launcher when a rank is lost; everyone who waits for a peer gives up.
struct alignas(64) JobStatus {
  std::atomic<int32_t> lostRank; ///< rank + 1, or 0
};

/// Progress of a collective that is under way in one group; counters only rise, and the last to arrive wakes the
/// others.
struct GroupCounters {
  struct alignas(64) Counter {
    std::atomic<uint32_t> value;
    std::atomic<uint32_t> sleepers;
  };
  Counter published[2], reduced[2], done[2]; ///< one of each for a staging slot
};

/// What a rank put into a staging slot, so that its peers can check that they are in the same collective.
struct alignas(64) SlotHeader {
  int32_t collective;
  int64_t count;
};

/// Room of a staging slot. A collective is cut into chunks of at most that.
inline constexpr int64_t slotBytes = 2 * 1024 * 1024;

/// The chunk where every rank has a core: slots then stay in the caches. Otherwise a chunk fills the slot, because each
/// one costs a few switches between the ranks.
inline constexpr int64_t cachedChunkBytes = 512 * 1024;

/// Offsets of everything in the memfd, for a job of `ranks` ranks on a mesh of `axes` axes.
struct SharedMemoryLayout {
  int64_t ranks, masks;

  SharedMemoryLayout(int64_t ranks, int64_t axes) : ranks(ranks), masks(int64_t(1) << axes) {}
  int64_t statusOffset(int64_t rank) const { return sizeof(JobStatus) + rank * sizeof(RankStatus); }
  /// The group of the ranks that differ from `first` in the axes of `mask` only; `first` has coordinate 0 in those.
  int64_t groupOffset(int64_t mask, int64_t first) const {
    return round(statusOffset(ranks)) + (mask * ranks + first) * sizeof(GroupCounters);
  }
  int64_t headerOffset(int64_t rank, int64_t slot) const {
    return round(groupOffset(masks, 0)) + (rank * 2 + slot) * sizeof(SlotHeader);
  }
  int64_t slotOffset(int64_t rank, int64_t slot) const {
    return round(headerOffset(ranks, 0)) + (rank * 2 + slot) * slotBytes;
  }
  int64_t totalBytes() const { return slotOffset(ranks, 0); }

private:
  static int64_t round(int64_t bytes) { return (bytes + 4095) / 4096 * 4096; }
};

} // namespace nd::rt

#endif // ND_RUNTIME_CORE_SHAREDMEMORY_H
