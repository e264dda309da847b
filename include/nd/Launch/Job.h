//===- Job.h - The ranks of a running program -------------------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// A job owns its processes: they are started together, watched together and end together. Whatever way the launcher
// ends, no process and no shared memory is left: ranks die with their parent, and the shared memory is a memfd.
//
//===----------------------------------------------------------------------===//

#ifndef ND_LAUNCH_JOB_H
#define ND_LAUNCH_JOB_H

#include "nd/Launch/Manifest.h"
#include "nd/Runtime/Core/Protocol.h"
#include "nd/Runtime/Core/SharedMemory.h"
#include <functional>
#include <memory>
#include <sys/types.h>

namespace nd::launch {

struct JobOptions {
  int threads = 0; ///< of each rank; 0: cores / ranks, at least 1
  /// Binds each thread to a core of its own, where there are as many that no other job has bound threads to.
  bool bind = false;
  bool ignoreMemory = false; ///< starts ranks for which there is too little memory
  int64_t totalSteps = 1;
  std::string tokenFile; ///< empty: the run takes no tokens
  int32_t tokenBytes = 2;
  bool shuffle = true;
  uint64_t seed = 0;
};

/// Bytes that a rank sent in a step by collectives of one group and kind.
struct SentBytes {
  int32_t collective; ///< the first of them
  int64_t bytes, betweenNodes;
};

/// What a rank reports of a step.
struct StepReport {
  int64_t step;
  double loss, gradNorm, lr, tokens;
  int32_t applied;
  double milliseconds;
  int64_t residentBytes;
  double phaseMilliseconds[4];
  std::vector<SentBytes> sent;
};

/// What a rank reports when it is ready.
struct ReadyReport {
  int64_t arenaBytes = 0;
  double touchMilliseconds = 0;
  int32_t cpuLevel = 0;
};

/// A slice of a file for one tensor of the program; the same table goes to all ranks. `part`: the file holds a larger
/// tensor, of which this one is a part.
struct FileSlice {
  int32_t tensor, dtype;
  int64_t offset;
  std::string path;
  PartOf part = {};
};

class CoreClaims;

class Job {
public:
  /// Called when a rank has finished a step.
  using StepHandler = std::function<void(int64_t rank, const StepReport &report)>;

  /// Starts the ranks and waits until all have opened the program.
  static llvm::Expected<std::unique_ptr<Job>> start(const Manifest &manifest, const JobOptions &options);
  ~Job();

  llvm::Error load(llvm::ArrayRef<FileSlice> slices) { return move(rt::MessageType::Load, slices); }
  llvm::Error save(llvm::ArrayRef<FileSlice> slices) { return move(rt::MessageType::Save, slices); }
  llvm::Error verify(llvm::ArrayRef<FileSlice> slices) { return move(rt::MessageType::Verify, slices); }
  /// Runs steps up to and including `lastStep`. In a call the inputs and scalars are those that were loaded.
  llvm::Error run(int64_t lastStep, bool isCall, const StepHandler &onStep);
  /// Ends the ranks in good order.
  llvm::Error finish();

  int getThreads() const { return threads; }
  bool isBound() const { return bound; }
  const ReadyReport &getReady() const { return ready; } ///< of rank 0; the first touch is the slowest rank's
  double getRendezvousMilliseconds() const { return rendezvousMilliseconds; }
  /// Whether the job ended because the user asked.
  bool wasInterrupted() const { return interrupted; }

private:
  struct Process;
  explicit Job(const Manifest &manifest);

  llvm::Error createSharedMemory();
  llvm::Error watchSignals();
  llvm::Error spawn(int64_t rank);
  llvm::Error move(rt::MessageType type, llvm::ArrayRef<FileSlice> slices);
  llvm::Error command(rt::MessageType type, const std::string &payload, const StepHandler &onStep = {});

  /// Serves the ranks until each has sent `until`.
  llvm::Error serve(rt::MessageType until, const StepHandler &onStep);
  llvm::Error readMessages(Process &process, rt::MessageType until, const StepHandler &onStep);
  llvm::Error handle(Process &process, rt::MessageType type, const std::string &payload, rt::MessageType until,
                     const StepHandler &onStep);
  void readOutput(Process &process);
  llvm::Error readSignals();
  llvm::Error reapChildren();
  llvm::Error checkProgress();
  /// The error for a rank that is gone; `how` empty: find out.
  llvm::Error lost(Process &process, std::string how = {});
  std::string describeWaiting(int64_t except) const;
  void killAll();

  rt::RankStatus &status(int64_t rank) const;

  const Manifest &manifest;
  rt::SharedMemoryLayout layout;
  std::vector<std::unique_ptr<Process>> processes;
  int memory = -1, signals = -1;
  char *shared = nullptr;
  int threads = 1;
  std::unique_ptr<CoreClaims> claims;
  bool bound = false;
  double startTime = 0, rendezvousMilliseconds = 0;
  ReadyReport ready;
  bool interrupted = false, finishing = false;
};

} // namespace nd::launch

#endif // ND_LAUNCH_JOB_H
