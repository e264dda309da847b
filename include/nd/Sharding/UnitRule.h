//===- UnitRule.h - What --fsdp-unit says -----------------------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_SHARDING_UNITRULE_H
#define ND_SHARDING_UNITRULE_H

#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/GlobPattern.h"
#include <optional>

namespace nd {

/// Which parameters are gathered together: those of each block (`block`), all (`whole`), or those of each module whose
/// path a glob matches, the outermost where one is inside another; then the others by blocks.
class UnitRule {
public:
  /// The rule refers to `text`. Fails with a message that names the option.
  static llvm::Expected<UnitRule> parse(llvm::StringRef text);

  bool isWhole() const { return whole; }
  bool isGlob() const { return glob.has_value(); }
  /// The path of the outermost module around a parameter that the glob matches, which may be the parameter itself;
  /// empty where there is none.
  llvm::StringRef match(llvm::StringRef parameter) const;

  /// The three of `paths` that are spelled most like the glob, which may leave out how a path begins.
  llvm::SmallVector<llvm::StringRef, 3> findAlike(llvm::SmallVector<llvm::StringRef> paths) const;

private:
  llvm::StringRef text;
  bool whole = false;
  std::optional<llvm::GlobPattern> glob;
};

/// Paths of the modules around a parameter and its own name, outermost first.
llvm::SmallVector<llvm::StringRef> modulePaths(llvm::StringRef parameter);

} // namespace nd

#endif // ND_SHARDING_UNITRULE_H
