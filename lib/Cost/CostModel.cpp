//===- CostModel.cpp - How long things take -------------------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "nd/Cost/CostModel.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace nd;

SentBytes nd::sentBytes(CommKind kind, GroupShape group, int64_t payload) {
  int64_t n = group.ranks(), nodes = group.nodes;
  switch (kind) {
  case CommKind::AllReduce:
    return {2 * (n - 1) * payload, 2 * (nodes - 1) * payload};
  case CommKind::AllGather:
  case CommKind::ReduceScatter:
    return {(n - 1) * payload, (nodes - 1) * payload};
  case CommKind::AllToAll:
    // Each rank keeps one of n parts, and sends n - inside of them to other nodes. n ranks, n parts of payload / n.
    return {(n - 1) * payload, (n - group.inside) * payload};
  case CommKind::Permute:
    // A ring's hop leaves the node at its last rank.
    return {n == 1 ? 0 : n * payload, nodes == 1 ? 0 : nodes * payload};
  }
  llvm_unreachable("all kinds are listed");
}

SentBytes nd::permutedBytes(llvm::ArrayRef<int64_t> sources, llvm::ArrayRef<int64_t> nodes, int64_t payload) {
  SentBytes sent;
  for (auto [position, source] : llvm::enumerate(sources)) {
    sent.total += source == static_cast<int64_t>(position) ? 0 : payload;
    sent.betweenNodes += nodes[source] == nodes[position] ? 0 : payload;
  }
  return sent;
}

double CostModel::compute(double flops, double bytes, llvm::StringRef type) const {
  return std::max(flops / system.flopsOf(type), bytes / system.memoryBandwidth);
}

namespace {

/// Steps of a doubling algorithm.
double steps(int64_t ranks) { return llvm::Log2_64_Ceil(static_cast<uint64_t>(ranks)); }

/// A gather of `payload` bytes over `ranks`: each sends its part to all others.
double gather(const Link &link, int64_t ranks, double payload) {
  auto n = static_cast<double>(ranks);
  return steps(ranks) * link.latency + (n - 1) / n * payload / link.bandwidth;
}

} // namespace

double CostModel::collective(CommKind kind, GroupShape group, double payload) const {
  const Link &inside = system.insideNode, &between = system.betweenNodes;
  auto n = static_cast<double>(group.ranks());
  if (group.ranks() == 1)
    return 0.0;
  switch (kind) {
  case CommKind::AllReduce:
    return 2 * collective(CommKind::AllGather, group, payload);
  case CommKind::AllGather:
  case CommKind::ReduceScatter:
    // Ranks of equal position gather a part of 1 / inside over the nodes; then a node gathers the parts.
    return gather(between, group.nodes, payload / static_cast<double>(group.inside)) +
           gather(inside, group.inside, payload);
  case CommKind::AllToAll:
    return steps(group.nodes) * between.latency + steps(group.inside) * inside.latency +
           static_cast<double>(group.ranks() - group.inside) / n * payload / between.bandwidth +
           static_cast<double>(group.inside - 1) / n * payload / inside.bandwidth;
  case CommKind::Permute: {
    const Link &link = group.nodes > 1 ? between : inside;
    return link.latency + payload / link.bandwidth;
  }
  }
  llvm_unreachable("all kinds are listed");
}
