//===- Locations.cpp - Locations as people read them ----------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "nd/Support/Locations.h"
#include "llvm/Support/Path.h"

using namespace mlir;
using namespace nd;

std::string nd::describeLocation(Location location) {
  if (auto name = dyn_cast<NameLoc>(location)) {
    std::string inner = describeLocation(name.getChildLoc());
    return name.getName().str() + (inner.empty() ? "" : " (" + inner + ")");
  }
  if (auto file = dyn_cast<FileLineColLoc>(location))
    return (llvm::sys::path::filename(file.getFilename().getValue()) + ":" + Twine(file.getLine())).str();
  if (auto fused = dyn_cast<FusedLoc>(location)) {
    for (Location part : fused.getLocations())
      if (std::string text = describeLocation(part); !text.empty())
        return text;
  }
  if (auto call = dyn_cast<CallSiteLoc>(location))
    return describeLocation(call.getCallee());
  return "";
}

StringRef nd::severityName(DiagnosticSeverity severity) {
  switch (severity) {
  case DiagnosticSeverity::Error:
    return "error";
  case DiagnosticSeverity::Warning:
    return "warning";
  case DiagnosticSeverity::Note:
    return "note";
  case DiagnosticSeverity::Remark:
    return "remark";
  }
  return "error";
}
