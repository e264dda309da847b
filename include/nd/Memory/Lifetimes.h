//===- Lifetimes.h - Which buffers of a program live when -------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// What rt-plan-memory places, and what a report of memory adds up: both read this, so that they cannot disagree.
//
// Buffers are of two sorts. *Fixed* ones last from step to step: scalars and metrics, then everything that is argument
// and result. *Shared* ones live from the first operation that touches them to the last, and share memory with others.
//
//===----------------------------------------------------------------------===//

#ifndef ND_MEMORY_LIFETIMES_H
#define ND_MEMORY_LIFETIMES_H

#include "nd/Dialect/RT/IR/RT.h"
#include "nd/Memory/ArenaPlanner.h"

namespace nd {

class ProgramLifetimes {
public:
  explicit ProgramLifetimes(rt::ProgramOp program);

  /// In the order of their places.
  llvm::ArrayRef<rt::TensorOp> getFixed() const { return fixed; }
  /// rt.buffer and outputs, in order of first use. Times are positions of operations in the program, from 1 on; a
  /// loop has one in front of its body and one behind it.
  const llvm::MapVector<mlir::Operation *, Lifetime> &getShared() const { return shared; }
  /// The operation at that time; null where the step has ended or not begun.
  mlir::Operation *getOperation(int64_t time) const {
    return time >= 1 && time <= static_cast<int64_t>(operations.size()) ? operations[time - 1] : nullptr;
  }

private:
  void findFixed(rt::ProgramOp program);
  void findShared(rt::ProgramOp program);
  void visit(mlir::Block &block);
  void visitLoop(rt::RepeatOp loop);
  void touch(mlir::Value buffer);

  llvm::SmallVector<rt::TensorOp> fixed;
  llvm::MapVector<mlir::Operation *, Lifetime> shared;
  std::vector<mlir::Operation *> operations;
};

} // namespace nd

#endif // ND_MEMORY_LIFETIMES_H
