//===- ReplicatedWork.h - Products that all ranks of an axis do -*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// What an axis of the mesh does not share: products and attentions of forward that run on no shard of it, so that all
// its ranks compute the same. That is right, but not what anyone asks for a mesh for, so it is said.
//
//===----------------------------------------------------------------------===//

#ifndef ND_LIB_SHARDING_PROPAGATE_REPLICATEDWORK_H
#define ND_LIB_SHARDING_PROPAGATE_REPLICATEDWORK_H

#include "Propagate/Propagation.h"

namespace nd {

/// Warns, here and in the report (`notes` of `nd.plan`), of each axis that does not share a hundredth of the work. The
/// parts of the tensor axis count as one axis: kv heads fewer than its ranks use a part of it by design.
void noteReplicatedWork(Program &program, const Analysis &analysis, const Propagation &propagation);

} // namespace nd

#endif // ND_LIB_SHARDING_PROPAGATE_REPLICATEDWORK_H
