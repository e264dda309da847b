//===- System.h - What a machine can do -------------------------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_COST_SYSTEM_H
#define ND_COST_SYSTEM_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace nd {

/// What one rank can send, in one direction, over links of one class.
struct Link {
  double bandwidth = 0.0; ///< bytes per second
  double latency = 0.0;   ///< seconds, for a message of no size
};

/// A machine as the cost model sees it (`--system`). Figures are those of one rank.
struct System {
  std::string name;
  /// FLOP/s of dense products by element type (`f32`, `bf16`...). A type that is absent runs at the rate of `f32`.
  std::map<std::string, double> flops;
  double memoryBytes = 0.0;
  double memoryBandwidth = 0.0; ///< bytes per second
  Link insideNode, betweenNodes;
  /// None: a node holds any number of ranks.
  std::optional<int64_t> ranksPerNode;
  /// Whether a collective proceeds while the rank computes.
  bool overlap = true;
  /// Whether `flops` are the machine's published peaks. Where they are only typical, no MFU is stated.
  bool published = true;

  double flopsOf(llvm::StringRef type) const;

  /// A built-in system by its name, or the system that a file of that name describes.
  static llvm::Expected<System> find(llvm::StringRef nameOrPath);
  /// Reads a description in YAML or JSON. Errors name the file, the line and the key.
  static llvm::Expected<System> parse(llvm::StringRef text, llvm::StringRef fileName);
  static llvm::ArrayRef<System> builtIn();
};

} // namespace nd

#endif // ND_COST_SYSTEM_H
