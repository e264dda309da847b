//===- NodeLayout.h - Which ranks share a node ------------------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Ranks are numbered row-major over the mesh and fill one node after the other, so inner axes stay inside a node and
// outer ones leave it. The boundary may split one axis: of `fsdp` = 16 over nodes of 8 with `tp` = 2 inside it, groups
// of 4 neighbours share a node.
//
//   invariant: the size of an axis is the ranks of it inside a node times the nodes that it spans
//
//===----------------------------------------------------------------------===//

#ifndef ND_COST_NODELAYOUT_H
#define ND_COST_NODELAYOUT_H

#include "nd/Cost/System.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"

namespace nd {

/// An axis of a mesh, outer to inner in a list of them.
struct PlacedAxis {
  std::string name;
  int64_t size = 1;
};

/// How many ranks of a group share a node, and over how many nodes it goes.
struct GroupShape {
  int64_t inside = 1, nodes = 1;
  int64_t ranks() const { return inside * nodes; }
};

class NodeLayout {
public:
  /// `nodes` 0: as few as the system needs. Fails with the sizes that would work when ranks do not fill nodes evenly,
  /// when a node would hold more than the system's, or when the boundary between nodes falls inside an axis unevenly.
  static llvm::Expected<NodeLayout> create(llvm::ArrayRef<PlacedAxis> axes, const System &system, int64_t nodes);

  int64_t getNumNodes() const { return numNodes; }
  int64_t getNumRanks() const { return numRanks; }
  llvm::ArrayRef<PlacedAxis> getAxes() const { return axes; }
  /// The group of ranks that differ only along these axes, by position in the mesh.
  GroupShape shapeOf(llvm::ArrayRef<unsigned> group) const;
  /// The same by name; names that the mesh has not are left out.
  GroupShape shapeOf(llvm::ArrayRef<llvm::StringRef> group) const;
  /// The node of each position of such a group, whose axes are listed major to minor, in any order. Nodes are numbered
  /// within the group.
  llvm::SmallVector<int64_t> nodesOf(llvm::ArrayRef<llvm::StringRef> group) const;

private:
  llvm::SmallVector<PlacedAxis> axes;
  llvm::SmallVector<GroupShape> shapes; ///< of each axis alone
  int64_t numNodes = 1, numRanks = 1;
};

} // namespace nd

#endif // ND_COST_NODELAYOUT_H
