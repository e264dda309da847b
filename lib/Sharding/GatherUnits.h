//===- GatherUnits.h - Which parameters are gathered together ---*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Parameters that are stored in shards are gathered unit by unit: the embedding, each block of the model, and what
// comes after the last block. The gathered copy is given back after forward and gathered again for backward, but for
// the last unit, which backward needs at once, and for a tied table, which the last unit uses too.
//
//===----------------------------------------------------------------------===//

#ifndef ND_LIB_SHARDING_GATHERUNITS_H
#define ND_LIB_SHARDING_GATHERUNITS_H

#include "Analysis.h"

namespace nd {

class GatherUnits {
public:
  GatherUnits(Program &program, const Analysis &analysis);

  /// Whether `user` takes a copy of the parameter behind `value` that is gathered once more.
  bool isGatheredAgain(mlir::Value value, mlir::Operation *user) const;
  /// The unit of a parameter: 0 the embedding, then the blocks, then the last.
  unsigned getUnit(mlir::BlockArgument parameter) const { return units.lookup(parameter); }
  /// What `nd.unit` of a gather says: the unit of the parameter behind `value`, and whether it is gathered once more.
  /// Null for what is no parameter.
  mlir::StringAttr getName(mlir::Value value, bool isAgain) const;

private:
  mlir::func::FuncOp function;
  const Analysis &analysis;
  mlir::ArrayAttr blocks;
  llvm::DenseMap<mlir::BlockArgument, unsigned> units;
  llvm::DenseSet<mlir::Value> again; ///< parameters that backward gathers again
};

} // namespace nd

#endif // ND_LIB_SHARDING_GATHERUNITS_H
