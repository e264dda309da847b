//===- Locations.cpp - Where in the user's model a node comes from --------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Locations.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Path.h"

using namespace mlir;
using namespace nd::onnx;

StringRef nd::onnx::packageRelative(StringRef path) {
  for (StringRef folder : {"site-packages/", "dist-packages/"})
    if (size_t at = path.rfind(folder); at != StringRef::npos)
      return path.drop_front(at + folder.size());
  if (size_t at = path.find("/lib/python3"); at != StringRef::npos)
    return path.drop_front(at + 1).split('/').second.split('/').second;
  return path.starts_with("/") ? llvm::sys::path::filename(path) : path;
}

namespace {

/// The module path of a list in Python's notation, ['', 'model', 'model.layers.0', 'transpose']: its last element is
/// the operation, the one before it the innermost module.
StringRef modulePath(StringRef scopes) {
  SmallVector<StringRef> names;
  while (true) {
    size_t begin = scopes.find_first_of("'\"");
    if (begin == StringRef::npos)
      break;
    size_t end = scopes.find(scopes[begin], begin + 1);
    if (end == StringRef::npos)
      break;
    names.push_back(scopes.slice(begin + 1, end));
    scopes = scopes.drop_front(end + 1);
  }
  return names.size() < 2 ? StringRef() : names[names.size() - 2];
}

/// The innermost `File "...", line N` of a Python stack trace.
std::optional<std::pair<StringRef, unsigned>> innermostLine(StringRef trace) {
  size_t at = trace.rfind("File \"");
  if (at == StringRef::npos)
    return std::nullopt;
  auto [file, rest] = trace.drop_front(at + 6).split('"');
  unsigned line = 0;
  if (!rest.consume_front(", line ") || rest.consumeInteger(10, line))
    return std::nullopt;
  return std::make_pair(packageRelative(file), line);
}

} // namespace

Location nd::onnx::locationOf(const onnx_wire::NodeProto &node, MLIRContext *context) {
  StringRef scopes, trace;
  for (const auto &entry : node.metadata_props()) {
    if (entry.key() == "pkg.torch.onnx.name_scopes")
      scopes = entry.value();
    else if (entry.key() == "pkg.torch.onnx.stack_trace")
      trace = entry.value();
  }
  Location inner = UnknownLoc::get(context);
  if (auto line = innermostLine(trace))
    inner = FileLineColLoc::get(context, line->first, line->second, 0);
  StringRef name = modulePath(scopes);
  if (name.empty())
    name = node.name();
  if (name.empty())
    return inner;
  return NameLoc::get(StringAttr::get(context, name), inner);
}

std::string nd::onnx::describe(Location loc) {
  if (auto name = dyn_cast<NameLoc>(loc)) {
    std::string inner = describe(name.getChildLoc());
    return name.getName().str() + (inner.empty() ? "" : " (" + inner + ")");
  }
  if (auto file = dyn_cast<FileLineColLoc>(loc))
    return (file.getFilename().getValue() + ":" + Twine(file.getLine())).str();
  if (auto fused = dyn_cast<FusedLoc>(loc)) {
    for (Location part : fused.getLocations())
      if (std::string text = describe(part); !text.empty())
        return text;
  }
  if (auto call = dyn_cast<CallSiteLoc>(loc))
    return describe(call.getCallee());
  return "";
}
