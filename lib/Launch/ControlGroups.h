//===- ControlGroups.h - Limits that the system sets ------------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_LIB_LAUNCH_CONTROLGROUPS_H
#define ND_LIB_LAUNCH_CONTROLGROUPS_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/Twine.h"
#include <string>

namespace nd::launch {

/// Where the system says things; tests say them elsewhere.
struct SystemFiles {
  std::string processes = "/proc", groups = "/sys/fs/cgroup";
};

/// A small file of the system, without the line's end; empty where there is none.
std::string readLine(const llvm::Twine &path);

/// Calls `visit` with the folder of this process's control group for a controller (`cpu`, `memory`) and of those around
/// it, and whether it is of version 2. Some of these folders may not exist.
void forEachControlGroup(llvm::StringRef controller, const SystemFiles &files,
                         llvm::function_ref<void(llvm::StringRef folder, bool unified)> visit);

} // namespace nd::launch

#endif // ND_LIB_LAUNCH_CONTROLGROUPS_H
