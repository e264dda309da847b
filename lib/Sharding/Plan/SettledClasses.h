//===- SettledClasses.h - What annotations say of classes -------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The user places single parameters, and a class of dimensions (DimensionClasses) is sharded alike everywhere. A class
// of which the user has placed all matrices alike is *settled*: it is sharded as they say, and vectors follow. Where
// some other matrix shards it otherwise, following the user would mean to reshard activations all over the program: it
// stays as the plan has it, and the parameter is stored as the user says and exchanged when it is used.
//
//===----------------------------------------------------------------------===//

#ifndef ND_LIB_SHARDING_PLAN_SETTLEDCLASSES_H
#define ND_LIB_SHARDING_PLAN_SETTLEDCLASSES_H

#include "DimensionClasses.h"
#include "MeshView.h"
#include "llvm/ADT/DenseMap.h"

namespace nd {

class SettledClasses {
public:
  SettledClasses(const DimensionClasses &classes, const MeshView &mesh) : classes(classes), mesh(mesh) {}

  /// How a parameter is used as far as it is known: by the user, or by the plan. Add all before asking.
  void add(mlir::Value parameter, const TensorSharding &use, bool byUser);

  /// The axes of a class that the user has settled; null for another.
  const AxisList *find(DimensionClasses::Id id) const;

private:
  struct Votes {
    AxisList axes; ///< of the first vote
    bool agree = true, byUser = false;
  };

  const DimensionClasses &classes;
  const MeshView &mesh;
  llvm::DenseMap<DimensionClasses::Id, Votes> votes;
};

} // namespace nd

#endif // ND_LIB_SHARDING_PLAN_SETTLEDCLASSES_H
