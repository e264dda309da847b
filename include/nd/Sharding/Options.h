//===- Options.h - What --shard says ----------------------------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_SHARDING_OPTIONS_H
#define ND_SHARDING_OPTIONS_H

#include "nd/Dialect/ND/IR/ND.h"
#include "llvm/Support/Error.h"

namespace nd {

/// A mesh as the user names it, in canonical order: dp, fsdp, cp, tp, outer to inner. An axis that was not named is
/// absent; one of size 1 is present.
struct ShardingOptions {
  struct Axis {
    std::string name;
    AxisRole role;
    int64_t size;
    bool operator==(const Axis &other) const { return name == other.name && role == other.role && size == other.size; }
  };
  llvm::SmallVector<Axis> axes;

  /// `GLOB=[fsdp+tp,_]`, as the user wrote them.
  std::vector<std::string> annotations;
  /// What FSDP shards: 1 and 2 the optimizer's state (and accumulated gradients), 3 the parameters too.
  int64_t zero = 3;
  /// The gather of forward is kept for backward.
  bool keepGathered = false;
  /// Which parameters FSDP gathers together: block, whole, or a glob over paths of modules.
  std::string fsdpUnit = "block";
  /// How attention reaches keys of other ranks along cp: auto, ring, gather or ulysses.
  std::string cpMode = "auto";
  /// Activations between tensor-parallel regions are sharded over the sequence.
  bool sequenceParallel = true;
  std::string lossChunk = "off";
  /// Units that gathers of parameters run ahead at most.
  int64_t prefetchUnits = 1;
  /// What the step runs on.
  std::string system = "host";
  int64_t nodes = 0;

  /// Reads `dp2,fsdp*,tp2`: axes in any order, under any of their names (`dp` or `dp_replicate`, `fsdp` or `dp_shard`,
  /// `cp`, `tp`), each followed by its size; one size may be `*` where `ranks` is given. An empty text is `dp1` (or
  /// `dp*`). `ranks` 0: the mesh says how many. Fails with a message that says what would work.
  static llvm::Expected<ShardingOptions> parse(llvm::StringRef text, int64_t ranks = 0);

  int64_t getNumRanks() const;
  /// The axis of that role, or null when it was not named.
  const Axis *findAxis(AxisRole role) const;
  /// The text that parses to this.
  std::string str() const;
};

} // namespace nd

#endif // ND_SHARDING_OPTIONS_H
