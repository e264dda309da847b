//===- NodeLayout.cpp - Which ranks share a node --------------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "nd/Cost/NodeLayout.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <numeric>

using namespace nd;
using llvm::formatv;

namespace {

llvm::Error refuse(const llvm::formatv_object_base &message) { return llvm::createStringError(message.str()); }

/// Ranks of a node, given how many nodes there shall be.
llvm::Expected<int64_t> ranksOfNode(int64_t ranks, const System &system, int64_t nodes) {
  int64_t most = system.ranksPerNode.value_or(ranks);
  if (nodes == 0) {
    if (ranks <= most)
      return ranks;
    if (ranks % most == 0)
      return most;
    return refuse(formatv("--system={0}: {1} ranks do not fill nodes of {2}; give --nodes=N, a divisor of {1} of at "
                          "least {3}, or another mesh",
                          system.name, ranks, most, (ranks + most - 1) / most));
  }
  if (ranks % nodes != 0)
    return refuse(formatv("--nodes={0}: {1} ranks do not divide over {0} nodes; give a divisor of {1}", nodes, ranks));
  if (ranks / nodes > most)
    return refuse(formatv("--nodes={0}: {1} ranks on a node, but one of {2} has {3}; give --nodes={4} or more", nodes,
                          ranks / nodes, system.name, most, (ranks + most - 1) / most));
  return ranks / nodes;
}

} // namespace

llvm::Expected<NodeLayout> NodeLayout::create(llvm::ArrayRef<PlacedAxis> axes, const System &system, int64_t nodes) {
  NodeLayout layout;
  layout.axes.assign(axes.begin(), axes.end());
  layout.shapes.resize(axes.size());
  for (const PlacedAxis &axis : axes)
    layout.numRanks *= axis.size;
  llvm::Expected<int64_t> perNode = ranksOfNode(layout.numRanks, system, nodes);
  if (!perNode)
    return perNode.takeError();
  layout.numNodes = layout.numRanks / *perNode;
  int64_t left = *perNode;
  for (auto [axis, shape] : llvm::reverse(llvm::zip_equal(axes, layout.shapes))) {
    shape.inside = std::gcd(left, axis.size);
    if (shape.inside != std::min(left, axis.size))
      return refuse(
          formatv("--nodes: nodes of {0} ranks cut axis {1} of size {2} unevenly ({3} of its ranks would have "
                  "to share a node); choose a size of {1} that divides {3} or is a multiple of it",
                  *perNode, axis.name, axis.size, left));
    shape.nodes = axis.size / shape.inside;
    left /= shape.inside;
  }
  return layout;
}

GroupShape NodeLayout::shapeOf(llvm::ArrayRef<unsigned> group) const {
  GroupShape shape;
  for (unsigned axis : group) {
    shape.inside *= shapes[axis].inside;
    shape.nodes *= shapes[axis].nodes;
  }
  return shape;
}

GroupShape NodeLayout::shapeOf(llvm::ArrayRef<llvm::StringRef> group) const {
  llvm::SmallVector<unsigned> positions;
  for (auto [position, axis] : llvm::enumerate(axes))
    if (llvm::is_contained(group, llvm::StringRef(axis.name)))
      positions.push_back(position);
  return shapeOf(positions);
}

llvm::SmallVector<int64_t> NodeLayout::nodesOf(llvm::ArrayRef<llvm::StringRef> group) const {
  llvm::SmallVector<int64_t> nodes = {0};
  for (llvm::StringRef name : group) {
    const auto *axis = llvm::find_if(axes, [&](const PlacedAxis &axis) { return axis.name == name; });
    if (axis == axes.end())
      continue;
    const GroupShape &shape = shapes[axis - axes.begin()];
    llvm::SmallVector<int64_t> finer;
    for (int64_t outer : nodes)
      for (int64_t coordinate = 0; coordinate < axis->size; ++coordinate)
        finer.push_back(outer * shape.nodes + coordinate / shape.inside);
    nodes = std::move(finer);
  }
  return nodes;
}
