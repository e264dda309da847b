//===- JobProcess.h - One process of a job ----------------------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_LIB_LAUNCH_JOBPROCESS_H
#define ND_LIB_LAUNCH_JOBPROCESS_H

#include "nd/Launch/Job.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <csignal>
#include <deque>

namespace nd::launch {

double monotonicMilliseconds();

/// "was killed by ..." or "ended with code ...", of a status of waitpid.
std::string describeEnd(int state);

/// Locks an open file or folder until it is closed; false when another process holds it. Where the file system has no
/// locks, nothing is known and nothing refused.
bool lockForThisProcess(int file);

/// The signals that the launcher takes from its signalfd.
void fillJobSignals(sigset_t &set);

struct Job::Process {
  /// Starts an executable with a socket and a pipe to the launcher; it dies when the launcher does.
  static llvm::Expected<std::unique_ptr<Process>> start(int64_t rank, const std::string &executable);
  ~Process();

  /// Takes what the socket holds. False at its end.
  bool receive();
  /// Takes a whole message out of what was received.
  bool nextMessage(rt::MessageType &type, std::string &payload);
  /// Takes what the pipe holds, by lines.
  void readOutput(llvm::function_ref<void(llvm::StringRef)> onLine);
  /// Waits for the process to end: its exit code, or 128 + signal. It is killed after a while.
  int waitForExit();
  /// How the process whose connection closed ended, if it does within a moment.
  std::string explainEnd();
  void kill();

  int64_t rank;
  pid_t pid = -1;
  int socket = -1, output = -1;
  bool answered = false, ended = false;
  uint64_t lastProgress = 0;
  double lastChange = 0;
  std::deque<std::string> lastLines; ///< of its output, for the message when it dies

private:
  std::string received, pendingLine;
};

} // namespace nd::launch

#endif // ND_LIB_LAUNCH_JOBPROCESS_H
