//===- Metrics.h - What a run says about its steps --------------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_LAUNCH_METRICS_H
#define ND_LAUNCH_METRICS_H

#include "nd/Launch/Job.h"
#include "llvm/Support/raw_ostream.h"
#include <map>

namespace nd::launch {

/// A step of the whole job.
struct StepMetrics {
  StepReport first;                                           ///< what rank 0 says; loss and norm are the same on all
  int64_t residentBytes = 0;                                  ///< of the largest rank
  int64_t arenaBytes = 0;                                     ///< of a rank
  int64_t reports = 0;                                        ///< ranks that have finished the step
  std::map<std::string, std::map<std::string, int64_t>> sent; ///< group -> collective -> bytes, over all ranks
  int64_t sentBetweenNodes = 0;                               ///< of all of them

  double tokensPerSecond() const { return first.milliseconds > 0 ? first.tokens / first.milliseconds * 1e3 : 0; }
};

/// Adds up the reports of the ranks, step by step.
class MetricsCollector {
public:
  MetricsCollector(const Manifest &manifest, int64_t arenaBytes) : manifest(manifest), arenaBytes(arenaBytes) {}

  /// Takes a report; the whole step when it was the last of it.
  std::optional<StepMetrics> add(int64_t rank, const StepReport &report);

private:
  const Manifest &manifest;
  int64_t arenaBytes;
  std::map<int64_t, StepMetrics> open;
};

/// Writes metrics.jsonl: one object a step, flushed. One run at a time writes to a file.
class MetricsFile {
public:
  static llvm::Expected<std::unique_ptr<MetricsFile>> create(llvm::StringRef path);
  llvm::Error write(const StepMetrics &metrics);

private:
  MetricsFile(llvm::StringRef path, int file) : path(path), stream(file, /*shouldClose=*/true) {}
  std::string path;
  llvm::raw_fd_ostream stream;
};

/// A line with a bar that is rewritten, on a terminal; otherwise a line now and then, and for the first and the last
/// step.
class ProgressLine {
public:
  ProgressLine(llvm::raw_ostream &stream, int64_t steps);
  void show(const StepMetrics &metrics);
  /// Ends a line that is being rewritten.
  void finish();

private:
  llvm::raw_ostream &stream;
  int64_t steps, stepsSeen = 0;
  bool terminal, unfinished = false;
  double start, lastShown = 0;
};

} // namespace nd::launch

#endif // ND_LAUNCH_METRICS_H
