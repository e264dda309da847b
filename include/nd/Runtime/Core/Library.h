//===- Library.h - What a target brings to a rank ---------------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The core of the runtime is the same for every target; a target's library (lib/Runtime/Host) defines the two functions
// here and the nd_rt_* operations that it implements.
//
//===----------------------------------------------------------------------===//

#ifndef ND_RUNTIME_CORE_LIBRARY_H
#define ND_RUNTIME_CORE_LIBRARY_H

#include "nd/Runtime/Core/ABI.h"
#include <memory>
#include <string>
#include <vector>

namespace nd::rt {

/// State of the libraries that a program calls: GEMM primitives and the like, made once at open.
class Library {
public:
  virtual ~Library() = default;
  /// Bytes of workspace that each thread needs.
  virtual int64_t workspaceBytes() const = 0;
};

/// Prepares every library call of the program for `threads` threads. Null, with a message, when one cannot be served.
std::unique_ptr<Library> openLibrary(const nd_program &program, int threads, std::string &error);

/// Moves data between ranks.
class Transport {
public:
  virtual ~Transport() = default;
  virtual void start(nd_rank &rank, const nd_collective_desc &desc, void *const *operands) = 0;
  virtual void wait(nd_rank &rank, const nd_collective_desc &desc) = 0;

  /// Bytes sent since the counters were cleared, by group, kind and class; counted where bytes are copied from another
  /// rank's memory, or to it.
  struct Sent {
    const char *group;
    int32_t kind, isScalar;
    int32_t collective; ///< id of the first of them
    int64_t bytes;
    int64_t betweenNodes; ///< of them
  };
  const std::vector<Sent> &getSent() const { return sent; }
  void clearSent() {
    for (Sent &entry : sent)
      entry.bytes = entry.betweenNodes = 0;
  }

protected:
  std::vector<Sent> sent; ///< an entry for every kind of collective of the program, made at open
};

/// The transport over the job's shared memory. `spin`: who waits keeps its core for a while, since nobody of the job
/// needs it. Null, with a message, on error.
std::unique_ptr<Transport> openTransport(const nd_program &program, int rank, int ranks, char *sharedMemory, bool spin,
                                         std::string &error);

} // namespace nd::rt

#endif // ND_RUNTIME_CORE_LIBRARY_H
