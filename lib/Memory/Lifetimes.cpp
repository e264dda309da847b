//===- Lifetimes.cpp - Which buffers of a program live when ---------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "nd/Memory/Lifetimes.h"

using namespace mlir;
using namespace nd;

namespace {

bool isFixed(Operation *root) {
  auto tensor = dyn_cast<rt::TensorOp>(root);
  return tensor && (!tensor.getOutput() || tensor.getKind() == "metric");
}

} // namespace

ProgramLifetimes::ProgramLifetimes(rt::ProgramOp program) {
  findFixed(program);
  findShared(program);
}

void ProgramLifetimes::findFixed(rt::ProgramOp program) {
  auto placeOf = [](rt::TensorOp tensor) {
    return tensor.getKind() == "scalar" ? 0 : tensor.getKind() == "metric" ? 1 : 2;
  };
  for (int place : {0, 1, 2})
    for (auto tensor : program.getBody().getOps<rt::TensorOp>())
      if (isFixed(tensor) && placeOf(tensor) == place)
        fixed.push_back(tensor);
}

void ProgramLifetimes::touch(Value buffer) {
  Operation *root = rt::getRoot(buffer).getDefiningOp();
  if (isa<rt::ConstantOp>(root) || isFixed(root))
    return;
  int64_t time = operations.size();
  auto [it, isNew] = shared.insert({root, Lifetime{0, time, time}});
  it->second.last = time;
  if (isNew)
    it->second.bytes = rt::getBytes(cast<MemRefType>(root->getResult(0).getType()));
}

void ProgramLifetimes::visit(Block &block) {
  for (Operation &op : block) {
    operations.push_back(&op);
    if (isa<rt::ViewOp>(op))
      continue;
    for (Value operand : op.getOperands()) {
      if (auto start = operand.getDefiningOp<rt::CollectiveStartOp>()) {
        for (Value moved : start.getOperands())
          touch(moved);
      } else {
        touch(operand);
      }
    }
    if (auto loop = dyn_cast<rt::RepeatOp>(op))
      visitLoop(loop);
  }
}

/// What a turn touches for the first time it writes before it reads, so that it lives within the turn. Everything older
/// that a turn touches is there for the next one too.
void ProgramLifetimes::visitLoop(rt::RepeatOp loop) {
  int64_t start = operations.size();
  visit(loop.getBody().front());
  operations.push_back(loop);
  int64_t end = operations.size();
  for (auto &[root, lifetime] : shared)
    if (lifetime.first <= start && lifetime.last >= start)
      lifetime.last = end;
}

void ProgramLifetimes::findShared(rt::ProgramOp program) {
  visit(program.getBody().front());
  int64_t end = operations.size() + 1;
  // Outputs are read after the step, even those that nothing writes.
  for (auto tensor : program.getBody().getOps<rt::TensorOp>()) {
    if (isFixed(tensor))
      continue;
    auto it = shared.insert({tensor, Lifetime{rt::getBytes(tensor.getBuffer().getType()), 0, 0}}).first;
    it->second.last = end;
  }
}
