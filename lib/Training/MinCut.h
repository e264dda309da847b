//===- MinCut.h - Minimum cut of a network ----------------------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_LIB_TRAINING_MINCUT_H
#define ND_LIB_TRAINING_MINCUT_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include <cstdint>
#include <limits>
#include <vector>

namespace nd {

/// A directed network with capacities; Dinic's algorithm. Paths from source to sink must not be of infinite capacity
/// throughout.
class MinCut {
public:
  using Node = unsigned;
  static constexpr int64_t kInfinite = std::numeric_limits<int64_t>::max() / 4;

  Node addNode();
  void addEdge(Node from, Node to, int64_t capacity);

  /// Whether each node lies on the sink's side of the minimum cut that is nearest to the sink.
  std::vector<bool> sinkSide(Node source, Node sink);

private:
  struct Edge {
    Node to;
    int64_t capacity; ///< what is left; edge i ^ 1 is the reverse of edge i
  };

  bool findLevels(Node source, Node sink);
  int64_t push(Node node, Node sink, int64_t limit);

  std::vector<Edge> edges;
  std::vector<llvm::SmallVector<unsigned, 4>> outgoing;
  std::vector<int> level;
  std::vector<unsigned> next;
};

} // namespace nd

#endif // ND_LIB_TRAINING_MINCUT_H
