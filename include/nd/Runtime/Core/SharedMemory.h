//===- SharedMemory.h - The memory that the ranks of a job share -*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// One memfd, made by the launcher and handed to each rank: a control page that the launcher watches, then the counters
// of collectives, then the ranks' arenas: a collective reads its peers' operands where they are. It has no name in any
// file system, so nothing survives a kill.
//
//===----------------------------------------------------------------------===//

#ifndef ND_RUNTIME_CORE_SHAREDMEMORY_H
#define ND_RUNTIME_CORE_SHAREDMEMORY_H

#include "nd/Runtime/Core/ABI.h"
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace nd::rt {

/// What a rank is doing: written by the rank, read by the launcher.
struct alignas(64) RankStatus {
  std::atomic<uint64_t> progress;  ///< rises with every operation
  std::atomic<int32_t> collective; ///< id of the collective it waits in, or -1
  std::atomic<uint64_t> program;   ///< what its program's collectives are, as a number; 0: not open yet
};

/// Stops the job: set by the launcher when a rank is lost; everyone who waits for a peer gives up.
struct alignas(64) JobStatus {
  std::atomic<int32_t> lostRank; ///< rank + 1, or 0
};

/// How far the ranks of a group are with one collective of the program. Counters rise by one for each member and use: a
/// member starts again only when all were done, so arrivals of different uses never mix. The last to arrive wakes the
/// others.
struct alignas(64) CollectiveState {
  struct Counter {
    std::atomic<uint32_t> value, sleepers;
  };
  Counter started; ///< operands are ready to be read
  Counter staged;  ///< what a stage has made is ready to be read; rises once a stage
  Counter done;    ///< nothing of the peers is read any more
};

/// Where a rank's operand of a collective is: bytes in its arena.
struct OperandPlace {
  int64_t src, dst;
};

/// Offsets of everything in the memfd. The launcher knows the control page alone; ranks, whose programs are equal, make
/// the file larger.
class SharedMemoryLayout {
public:
  explicit SharedMemoryLayout(int64_t ranks) : ranks(ranks) {}
  SharedMemoryLayout(int64_t ranks, const nd_program &program)
      : ranks(ranks), collectives(program.num_collectives), arenaBytes(round(program.arena_bytes, hugePage)) {
    for (int32_t i = 0; i < program.num_collectives; ++i)
      operands += program.collectives[i]->num_operands;
  }

  int64_t statusOffset(int64_t rank) const { return sizeof(JobStatus) + rank * sizeof(RankStatus); }
  /// `first` is the lowest rank of the group.
  int64_t stateOffset(int64_t collective, int64_t first) const {
    return controlBytes() + (collective * ranks + first) * sizeof(CollectiveState);
  }
  /// `operand` counts over all collectives.
  int64_t placeOffset(int64_t rank, int64_t operand) const {
    return round(stateOffset(collectives, 0), page) + (rank * operands + operand) * sizeof(OperandPlace);
  }
  int64_t arenaOffset(int64_t rank) const { return round(placeOffset(ranks, 0), hugePage) + rank * arenaBytes; }
  int64_t controlBytes() const { return round(statusOffset(ranks), page); }
  int64_t totalBytes() const { return arenaOffset(ranks); }

private:
  static constexpr int64_t page = 4096, hugePage = 2 << 20;
  static int64_t round(int64_t bytes, int64_t unit) { return (bytes + unit - 1) / unit * unit; }

  int64_t ranks, collectives = 0, operands = 0, arenaBytes = 0;
};

} // namespace nd::rt

#endif // ND_RUNTIME_CORE_SHAREDMEMORY_H
