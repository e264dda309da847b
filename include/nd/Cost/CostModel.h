//===- CostModel.h - How long things take -----------------------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Computation: a roofline, the longer of arithmetic and memory traffic. Communication: a latency for each of log2(n)
// steps, and the bytes of a bandwidth-optimal algorithm over the bandwidth. A collective that goes over nodes is
// hierarchical: between ranks of equal position in their nodes over the network, and inside the nodes over their links.
//
// Bytes are exact. A *payload* X is a rank's whole tensor: what an all-reduce reduces, what a gather has gathered, what
// a reduce-scatter scatters, what an all-to-all exchanges and a permute sends.
//
//===----------------------------------------------------------------------===//

#ifndef ND_COST_COSTMODEL_H
#define ND_COST_COSTMODEL_H

#include "nd/Cost/NodeLayout.h"

namespace nd {

enum class CommKind { AllReduce, AllGather, ReduceScatter, AllToAll, Permute };

/// Bytes that the ranks of one group send in one collective, all of them together.
struct SentBytes {
  int64_t total = 0;
  int64_t betweenNodes = 0; ///< of them
};

/// `payload` is a rank's. Of a permute, the whole group moves by one position, as in a ring.
SentBytes sentBytes(CommKind kind, GroupShape group, int64_t payload);
/// A permute in which position i of the group, which is on node nodes[i], receives from sources[i].
SentBytes permutedBytes(llvm::ArrayRef<int64_t> sources, llvm::ArrayRef<int64_t> nodes, int64_t payload);

class CostModel {
public:
  explicit CostModel(System system) : system(std::move(system)) {}

  const System &getSystem() const { return system; }
  /// Seconds of a kernel or product.
  double compute(double flops, double bytes, llvm::StringRef type) const;
  /// Seconds of a collective of `payload` bytes.
  double collective(CommKind kind, GroupShape group, double payload) const;

private:
  System system;
};

} // namespace nd

#endif // ND_COST_COSTMODEL_H
