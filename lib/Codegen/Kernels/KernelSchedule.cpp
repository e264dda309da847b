//===- KernelSchedule.cpp - Stages of a row, and memory -------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "KernelSchedule.h"

using namespace mlir;
using namespace nd;

/// From this cost on a value is kept rather than computed again; a load and an operation are 1 each, exp is 16.
static constexpr unsigned keepCost = 8;

int64_t nd::elementBytes(Type type) { return std::max<int64_t>(type.getIntOrFloatBitWidth() / 8, 1); }

KernelSchedule::KernelSchedule(const KernelProgram &program) {
  auto reach = [&](const Node *node) { numStages = std::max(numStages, node->level + 1); };
  for (const Node *reduction : program.reductions)
    llvm::for_each(reduction->operands, reach);
  for (const Root &root : program.roots)
    if (root.kind != Root::Row)
      llvm::for_each(root.nodes, reach);

  for (const Root &root : program.roots) {
    if (root.kind != Root::Full)
      continue;
    unsigned stage = 0;
    for (const Node *node : root.nodes)
      stage = std::max(stage, node->level);
    storeStage[&root] = firstWrite[&root] = stage;
    for (const Node *node : root.nodes)
      if (node->onColumn)
        kept.try_emplace(node, Kept{stage, &root, std::nullopt});
  }
  for (unsigned stage = 0; stage < numStages; ++stage) {
    for (const Node *reduction : program.reductions) {
      unsigned level = reduction->level - 1;
      if (level == stage)
        for (Node *operand : reduction->operands)
          visit(operand, stage);
    }
    for (const Root &root : program.roots)
      if (root.kind == Root::Full ? storeStage[&root] == stage : root.kind != Root::Row && stage + 1 == numStages)
        for (Node *node : root.nodes)
          visit(node, stage);
  }
  keepInResults(program);
  for (auto &[node, where] : kept)
    if (!where.root) {
      where.slot = slots.size();
      slots.push_back(elementBytes(node->type));
    }
}

void KernelSchedule::visit(Node *node, unsigned stage) {
  if (!node->onColumn)
    return;
  auto known = kept.find(node);
  if (known != kept.end() && known->second.stage < stage) {
    lastReload[node] = std::max(lastReload[node], stage);
    return;
  }
  auto first = firstUse.try_emplace(node, stage);
  if (!first.second && first.first->second < stage && node->cost >= keepCost && node->kind != Node::Load &&
      known == kept.end()) {
    kept[node] = Kept{first.first->second, nullptr, std::nullopt};
    lastReload[node] = stage;
    return;
  }
  unsigned &last = lastUse[node];
  if (!first.second && last == stage)
    return;
  last = stage;
  for (Node *operand : node->operands)
    visit(operand, stage);
}

/// A kept value may wait in the row of a result that is stored no earlier than it is last loaded.
void KernelSchedule::keepInResults(const KernelProgram &program) {
  if (program.segments.size() != 1)
    return;
  llvm::DenseSet<const Root *> taken;
  for (const Node &node : program.nodes) {
    auto where = kept.find(&node);
    if (where == kept.end() || where->second.root)
      continue;
    for (const Root &root : program.roots) {
      if (root.kind != Root::Full || taken.contains(&root) || firstWrite[&root] < lastReload[&node] ||
          !root.nodes.front()->onColumn || root.nodes.front()->type != node.type)
        continue;
      where->second.root = &root;
      firstWrite[&root] = where->second.stage;
      taken.insert(&root);
      break;
    }
  }
}
