//===- RankGroup.cpp - The ranks of a collective, and their nodes ---------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "RankGroup.h"
#include "nd/Runtime/Core/Rank.h"
#include <algorithm>

using namespace nd::rt;

RankGroup RankGroup::find(const nd_program &program, const nd_collective_desc &desc, int self, std::string &error) {
  auto inGroup = [&](int axis) {
    return std::find(desc.axes, desc.axes + desc.num_axes, axis) != desc.axes + desc.num_axes;
  };
  int ranks = 1;
  for (int axis = 0; axis < program.num_axes; ++axis)
    ranks *= program.axis_sizes[axis];
  nd_rank own, other; // for their coordinates
  own.program = other.program = &program;
  own.rank = self;
  RankGroup group;
  group.lowest = ranks;
  for (int candidate = 0; candidate < ranks; ++candidate) {
    other.rank = candidate;
    bool member = true;
    for (int axis = 0; axis < program.num_axes; ++axis)
      member &= inGroup(axis) || other.coordinate(axis) == own.coordinate(axis);
    if (!member)
      continue;
    size_t position = other.positionIn(desc);
    group.members.resize(std::max(group.members.size(), position + 1));
    group.members[position] = candidate;
    group.lowest = std::min(group.lowest, candidate);
  }
  group.ownPosition = static_cast<int>(own.positionIn(desc));

  int ranksOfNode = ranks / std::max(1, program.num_nodes);
  std::vector<std::vector<int>> byNode; // positions
  std::vector<int> known;               // the job's numbers of these nodes
  for (int position = 0; position < group.size(); ++position) {
    int ofJob = group.members[position] / ranksOfNode;
    auto index = std::find(known.begin(), known.end(), ofJob) - known.begin();
    if (index == static_cast<ptrdiff_t>(known.size())) {
      known.push_back(ofJob);
      byNode.emplace_back();
    }
    group.node.push_back(static_cast<int>(index));
    group.place.push_back(static_cast<int>(byNode[index].size()));
    byNode[index].push_back(position);
  }
  group.numNodes = static_cast<int>(byNode.size());
  for (size_t index = 0; index < byNode.size(); ++index) {
    if (byNode[index].size() != byNode[0].size())
      error = "of the " + std::to_string(group.size()) + " ranks of its group " + std::to_string(byNode[0].size()) +
              " are on node " + std::to_string(known[0]) + " and " + std::to_string(byNode[index].size()) +
              " on node " + std::to_string(known[index]) + ", each of " + std::to_string(ranksOfNode) +
              " ranks; take a number of --nodes that cuts the mesh evenly";
    group.positions.insert(group.positions.end(), byNode[index].begin(), byNode[index].end());
  }
  return group;
}
