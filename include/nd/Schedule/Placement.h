//===- Placement.h - Which ranks of a mesh share a node ---------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_SCHEDULE_PLACEMENT_H
#define ND_SCHEDULE_PLACEMENT_H

#include "nd/Cost/NodeLayout.h"
#include "nd/Dialect/ND/IR/ND.h"

namespace nd {

/// The axes of a mesh, outer to inner; none of null, which is one rank.
llvm::SmallVector<PlacedAxis> placedAxes(MeshOp mesh);

/// Over `nodes` nodes; 0: as many as the mesh says, and where it says nothing as few as the system needs.
llvm::Expected<NodeLayout> placeMesh(MeshOp mesh, const System &system, int64_t nodes = 0);

} // namespace nd

#endif // ND_SCHEDULE_PLACEMENT_H
