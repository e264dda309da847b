//===- MinCut.cpp - Minimum cut of a network ------------------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "MinCut.h"
#include <deque>

using namespace nd;

MinCut::Node MinCut::addNode() {
  outgoing.emplace_back();
  return outgoing.size() - 1;
}

void MinCut::addEdge(Node from, Node to, int64_t capacity) {
  outgoing[from].push_back(edges.size());
  edges.push_back({to, capacity});
  outgoing[to].push_back(edges.size());
  edges.push_back({from, 0});
}

bool MinCut::findLevels(Node source, Node sink) {
  level.assign(outgoing.size(), -1);
  level[source] = 0;
  std::deque<Node> queue = {source};
  while (!queue.empty()) {
    Node node = queue.front();
    queue.pop_front();
    for (unsigned index : outgoing[node])
      if (edges[index].capacity > 0 && level[edges[index].to] < 0) {
        level[edges[index].to] = level[node] + 1;
        queue.push_back(edges[index].to);
      }
  }
  return level[sink] >= 0;
}

/// Sends at most `limit` from `node` along one path of rising levels. The path is followed without recursion: it may be
/// as long as the model is deep.
int64_t MinCut::push(Node source, Node sink, int64_t limit) {
  llvm::SmallVector<unsigned> path;
  Node node = source;
  while (node != sink) {
    bool advanced = false;
    for (; next[node] < outgoing[node].size(); ++next[node]) {
      const Edge &edge = edges[outgoing[node][next[node]]];
      if (edge.capacity > 0 && level[edge.to] == level[node] + 1) {
        path.push_back(outgoing[node][next[node]]);
        node = edge.to;
        advanced = true;
        break;
      }
    }
    if (advanced)
      continue;
    if (path.empty())
      return 0;
    // A dead end: step back and try the next edge there.
    node = edges[path.pop_back_val() ^ 1].to;
    ++next[node];
  }
  for (unsigned index : path)
    limit = std::min(limit, edges[index].capacity);
  for (unsigned index : path) {
    edges[index].capacity -= limit;
    edges[index ^ 1].capacity += limit;
  }
  return limit;
}

std::vector<bool> MinCut::sinkSide(Node source, Node sink) {
  while (findLevels(source, sink)) {
    next.assign(outgoing.size(), 0);
    while (push(source, sink, kInfinite) > 0) {
    }
  }
  // Nodes from which the sink can still be reached.
  std::vector<bool> reaches(outgoing.size(), false);
  reaches[sink] = true;
  std::deque<Node> queue = {sink};
  while (!queue.empty()) {
    Node node = queue.front();
    queue.pop_front();
    for (unsigned index : outgoing[node]) {
      Node from = edges[index].to;
      if (!reaches[from] && edges[index ^ 1].capacity > 0) {
        reaches[from] = true;
        queue.push_back(from);
      }
    }
  }
  return reaches;
}
