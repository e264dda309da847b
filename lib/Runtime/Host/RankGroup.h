//===- RankGroup.h - The ranks of a collective, and their nodes -*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
//   invariant: each node holds as many of a group's ranks; `positionAt` is the inverse of (node, place)
//
//===----------------------------------------------------------------------===//

#ifndef ND_LIB_RUNTIME_HOST_RANKGROUP_H
#define ND_LIB_RUNTIME_HOST_RANKGROUP_H

#include "nd/Runtime/Core/ABI.h"
#include <string>
#include <vector>

namespace nd::rt {

/// The ranks along the axes of a collective.
class RankGroup {
public:
  /// The group of rank `self`. Writes a message where its ranks do not share nodes evenly.
  static RankGroup find(const nd_program &program, const nd_collective_desc &desc, int self, std::string &error);

  int size() const { return static_cast<int>(members.size()); }
  int nodes() const { return numNodes; }
  /// Ranks of a node.
  int inside() const { return size() / numNodes; }

  int memberAt(int position) const { return members[position]; }
  /// This rank's position, and the lowest rank of the group.
  int position() const { return ownPosition; }
  int first() const { return lowest; }

  /// Nodes are numbered within the group, in the order in which positions meet them.
  int nodeOf(int position) const { return node[position]; }
  int placeOf(int position) const { return place[position]; }
  int positionAt(int ofNode, int ofPlace) const { return positions[ofNode * inside() + ofPlace]; }
  bool crossesNodes(int position) const { return node[position] != node[ownPosition]; }

private:
  std::vector<int> members;                ///< by position
  std::vector<int> node, place, positions; ///< of each position; by node, then place
  int numNodes = 1, ownPosition = 0, lowest = 0;
};

} // namespace nd::rt

#endif // ND_LIB_RUNTIME_HOST_RANKGROUP_H
