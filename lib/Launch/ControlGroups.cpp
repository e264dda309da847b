//===- ControlGroups.cpp - Limits that the system sets --------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "ControlGroups.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace llvm;
using namespace nd::launch;

std::string nd::launch::readLine(const Twine &path) {
  ErrorOr<std::unique_ptr<MemoryBuffer>> buffer = MemoryBuffer::getFileAsStream(path);
  return buffer ? (*buffer)->getBuffer().split('\n').first.str() : "";
}

void nd::launch::forEachControlGroup(StringRef controller, const SystemFiles &files,
                                     function_ref<void(StringRef folder, bool unified)> visit) {
  ErrorOr<std::unique_ptr<MemoryBuffer>> groups = MemoryBuffer::getFileAsStream(files.processes + "/self/cgroup");
  SmallVector<StringRef> lines;
  if (groups)
    (*groups)->getBuffer().split(lines, '\n', -1, /*KeepEmpty=*/false);
  for (StringRef line : lines) { // hierarchy:controllers:path
    auto [controllers, path] = line.split(':').second.split(':');
    bool unified = controllers.empty();
    if (!unified && !is_contained(split(controllers, ','), controller))
      continue;
    // In a container the path may be that of the host: then the group is the root of what is mounted.
    for (StringRef group = path;; group = group.rsplit('/').first) {
      visit((files.groups + Twine(unified ? "" : "/") + (unified ? "" : controller) + group.rtrim('/')).str(), unified);
      if (group.empty() || group == "/")
        break;
    }
  }
}
