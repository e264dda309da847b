//===- GatherUnits.h - Which parameters are gathered together ---*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Parameters that are stored in shards are gathered unit by unit. By default units are the embedding, each block of the
// model, and what comes after the last block. A glob makes a unit of each module whose path it matches, the outermost
// where one is inside another; `whole` makes one unit of everything.
//
// The gathered copy is given back after forward and gathered again for backward, but for the unit that forward reads
// last, which backward needs at once (a tied table is in it: the head reads it last), and for what units share that are
// not neighbours. With `--keep-gathered` all units stay from forward to backward; with `--zero=1|2`, where only master
// copies are stored in shards, for the whole step.
//
//===----------------------------------------------------------------------===//

#ifndef ND_LIB_SHARDING_RESHARD_GATHERUNITS_H
#define ND_LIB_SHARDING_RESHARD_GATHERUNITS_H

#include "Analysis.h"

namespace nd {

/// Fails for a glob that matches no module of the function's parameters, naming some that are spelled alike.
llvm::LogicalResult checkUnitRule(mlir::func::FuncOp function, llvm::StringRef text);

class GatherUnits {
public:
  GatherUnits(Program &program, const Analysis &analysis);

  /// Forms of a parameter (rounded, transposed, one row for all tokens) that forward computes and backward reads are
  /// computed again for backward, from the copy that it gathers. So what forward gathered is given back, and a shard in
  /// the type of computation lives no longer than from its rounding to the gather that it is for.
  void separateForms();

  /// Whether `user` takes a copy of the parameter behind `value` that is gathered once more.
  bool isGatheredAgain(mlir::Value value, mlir::Operation *user) const;
  /// What `nd.unit` of a gather says: the unit of the parameter behind `value`, and whether it is gathered once more.
  /// Null for what is no parameter.
  mlir::StringAttr getName(mlir::Value value, bool isAgain) const;

  /// Whether what is gathered stays for all microbatches of a step.
  bool areOncePerStep() const { return isOncePerStep; }

private:
  /// Whether forward's copy is given back.
  bool isGivenBack(mlir::BlockArgument parameter) const;

  mlir::func::FuncOp function;
  const Analysis &analysis;
  llvm::DenseMap<mlir::BlockArgument, mlir::StringAttr> units;
  mlir::StringAttr kept;                      ///< the unit that is gathered once
  llvm::DenseSet<mlir::BlockArgument> shared; ///< parameters that forward reads when the second unit behind is in use
  bool keepsAll = false, isOncePerStep = false;
};

} // namespace nd

#endif // ND_LIB_SHARDING_RESHARD_GATHERUNITS_H
