//===- MachineMemory.h - Whether a job fits into memory ---------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_LIB_LAUNCH_MACHINEMEMORY_H
#define ND_LIB_LAUNCH_MACHINEMEMORY_H

#include "ControlGroups.h"
#include "nd/Launch/Manifest.h"
#include <optional>

namespace nd::launch {

/// Bytes that new processes can have without others being killed, and who says so.
struct AvailableMemory {
  int64_t bytes = 0;
  std::string source;
};

/// MemAvailable of /proc/meminfo with the free swap, or what a control group leaves where that is less. Nothing where
/// the system does not say.
std::optional<AvailableMemory> findAvailableMemory(const SystemFiles &files);

/// Bytes that a rank takes: its arena in large pages, its threads' scratch, and what a process costs (measured).
uint64_t bytesOfRank(const Manifest &manifest, int threads);

/// A warning, or nothing, where the ranks take more than 80 % of the memory; an error where they cannot fit, unless
/// they shall be started all the same.
llvm::Expected<std::string> checkMemory(const Manifest &manifest, int threads, const AvailableMemory &memory,
                                        bool startAnyway);

} // namespace nd::launch

#endif // ND_LIB_LAUNCH_MACHINEMEMORY_H
