//===- UnitRule.cpp - What --fsdp-unit says -------------------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "nd/Sharding/UnitRule.h"
#include "llvm/ADT/STLExtras.h"

using namespace nd;
using llvm::SmallVector;
using llvm::StringRef;

SmallVector<StringRef> nd::modulePaths(StringRef parameter) {
  SmallVector<StringRef> paths;
  for (size_t dot = parameter.find('.'); dot != StringRef::npos; dot = parameter.find('.', dot + 1))
    paths.push_back(parameter.take_front(dot));
  paths.push_back(parameter);
  return paths;
}

llvm::Expected<UnitRule> UnitRule::parse(StringRef text) {
  UnitRule rule;
  rule.text = text;
  rule.whole = text == "whole";
  if (text.empty())
    return llvm::createStringError("--fsdp-unit is empty: write block, whole, or a glob over paths of modules");
  if (rule.whole || text == "block")
    return rule;
  // LLVM expands {a,b} to as many patterns.
  llvm::Expected<llvm::GlobPattern> glob = llvm::GlobPattern::create(text, /*MaxSubPatterns=*/64);
  if (!glob)
    return llvm::createStringError("--fsdp-unit=" + text + ": " + llvm::toString(glob.takeError()));
  rule.glob = std::move(*glob);
  return rule;
}

StringRef UnitRule::match(StringRef parameter) const {
  if (glob)
    for (StringRef path : modulePaths(parameter))
      if (glob->match(path))
        return path;
  return {};
}

SmallVector<StringRef, 3> UnitRule::findAlike(SmallVector<StringRef> paths) const {
  StringRef wanted = text;
  bool isOpen = wanted.consume_front("*");
  wanted.consume_front(".");
  auto distance = [&](StringRef path) {
    unsigned least = path.edit_distance(wanted);
    if (isOpen)
      for (size_t dot = path.find('.'); dot != StringRef::npos; dot = path.find('.', dot + 1))
        least = std::min(least, path.drop_front(dot + 1).edit_distance(wanted));
    return least;
  };
  SmallVector<std::pair<unsigned, StringRef>> ranked;
  for (StringRef path : paths)
    ranked.emplace_back(distance(path), path);
  llvm::sort(ranked);
  SmallVector<StringRef, 3> found;
  for (auto [_, path] : llvm::ArrayRef(ranked).take_front(3))
    found.push_back(path);
  return found;
}
