//===- Cores.h - Cores that ranks may run on --------------------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_LIB_LAUNCH_CORES_H
#define ND_LIB_LAUNCH_CORES_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

namespace nd::launch {

/// Cores that this process may keep busy: those of its affinity, but no more than its control groups give it time for.
int availableCores();

/// Cores that `cpu.max` (`$quota $period`) or a quota and a period of version 1 give time for; 0: no limit.
double parseCoreLimit(llvm::StringRef quota, llvm::StringRef period);

/// Cores for a job's threads that no other job on this machine has bound its threads to. They are given back when the
/// process ends, however it does.
class CoreClaims {
public:
  CoreClaims() = default;
  CoreClaims(const CoreClaims &) = delete;
  CoreClaims &operator=(const CoreClaims &) = delete;
  ~CoreClaims() { release(); }

  /// All or none. Hardware threads of one core are taken one after the other, so that threads share a core only where
  /// there are more than cores.
  bool claim(int64_t count);
  void release();
  llvm::ArrayRef<int> get() const { return cores; }

private:
  llvm::SmallVector<int> cores, sockets;
};

} // namespace nd::launch

#endif // ND_LIB_LAUNCH_CORES_H
