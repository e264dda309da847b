//===- Placement.cpp - Which ranks of a mesh share a node -----------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "nd/Schedule/Placement.h"

using namespace nd;

llvm::SmallVector<PlacedAxis> nd::placedAxes(MeshOp mesh) {
  llvm::SmallVector<PlacedAxis> axes;
  if (mesh)
    for (auto axis : mesh.getAxes().getAsRange<MeshAxisAttr>())
      axes.push_back({axis.getName().getValue().str(), axis.getSize()});
  return axes;
}

llvm::Expected<NodeLayout> nd::placeMesh(MeshOp mesh, const System &system, int64_t nodes) {
  if (nodes == 0 && mesh && mesh.getNodes() > 1)
    nodes = static_cast<int64_t>(mesh.getNodes());
  return NodeLayout::create(placedAxes(mesh), system, nodes);
}
