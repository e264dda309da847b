//===- Rank.h - One process of a running program ----------------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_RUNTIME_CORE_RANK_H
#define ND_RUNTIME_CORE_RANK_H

#include "nd/Runtime/Core/ABI.h"
#include "nd/Runtime/Core/Dtype.h"
#include "nd/Runtime/Core/Library.h"
#include "nd/Runtime/Core/Profile.h"
#include "nd/Runtime/Core/SharedMemory.h"
#include "nd/Runtime/Core/ThreadPool.h"
#include <atomic>
#include <cstdarg>
#include <memory>

/// Everything a rank owns. The step function sees it as an opaque handle. An operation that fails records why; those
/// that follow do nothing, and nd_step reports it: generated code has no error paths.
struct nd_rank {
  const nd_program *program = nullptr;
  int rank = 0, ranks = 1;
  int64_t totalSteps = 0;
  int cpuLevel = ND_CPU_V3;

  char *arena = nullptr;                   ///< planned buffers; of a program of several ranks in shared memory
  char *threadMemory = nullptr;            ///< scratch and workspace of thread 0; those of thread t follow
  int64_t arenaBytes = 0, threadBytes = 0; ///< of these mappings
  int64_t scratchBytes = 0, workspaceBytes = 0;
  double touchMilliseconds = 0;

  char *sharedMemory = nullptr; ///< the whole of it, peers' arenas too
  int64_t sharedBytes = 0;
  nd::rt::RankStatus *status = nullptr; ///< in shared memory, or `ownStatus`
  nd::rt::RankStatus ownStatus{};

  nd::rt::ThreadPool pool;
  std::unique_ptr<nd::rt::Library> library;
  std::unique_ptr<nd::rt::Transport> transport;

  int64_t stepsDone = 0;      ///< all steps: the schedule's clock
  int64_t updatesApplied = 0; ///< Adam's clock
  int32_t phase = ND_PHASE_FORWARD;
  double phaseMilliseconds[4] = {0, 0, 0, 0};
  double phaseStart = 0;

  std::unique_ptr<nd::rt::Profile> profile; ///< null: not wanted

  bool failed = false;
  char error[2048] = "";

  ~nd_rank();

  void *scratch(int thread) const { return threadMemory + thread * (scratchBytes + workspaceBytes); }
  void *workspace(int thread) const { return static_cast<char *>(scratch(thread)) + scratchBytes; }

  /// Whether the arena is in shared memory, where peers read it.
  bool hasPeers() const { return ranks > 1; }

  /// Called by every operation: false when the step has failed already.
  bool proceed() {
    status->progress.fetch_add(1, std::memory_order_relaxed);
    return !failed;
  }

  /// Records the first failure.
  __attribute__((format(printf, 2, 3))) void fail(const char *format, ...);

  /// This rank's coordinate along a mesh axis.
  int64_t coordinate(int axis) const;
  /// This rank's position in the group of a collective.
  int64_t positionIn(const nd_collective_desc &desc) const;
};

namespace nd::rt {

double nowMilliseconds();

/// Times an operation from here to the end of the scope, where that is wanted.
class ProfileScope {
public:
  ProfileScope(nd_rank &rank, Profile::Kind kind, int32_t index, const char *location)
      : profile(rank.profile.get()), kind(kind), index(index), location(location),
        start(profile ? nowMilliseconds() : 0) {}
  ~ProfileScope() {
    if (profile)
      profile->add(kind, index, location, nowMilliseconds() - start);
  }
  ProfileScope(const ProfileScope &) = delete;
  ProfileScope &operator=(const ProfileScope &) = delete;

private:
  Profile *profile;
  Profile::Kind kind;
  int32_t index;
  const char *location;
  double start;
};

int64_t numElements(const nd_tensor_desc &desc);

/// The kernel level of this machine. False when it has not even the lowest.
bool detectCpuLevel(int &level);

} // namespace nd::rt

#endif // ND_RUNTIME_CORE_RANK_H
