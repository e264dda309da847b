//===- MicrobatchLoop.h - What a step does per microbatch -------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// A step of M microbatches is a straight line whose borders are nd.microbatch and nd.accumulate. This says how often
// each of its operations runs; a step without those has one turn, and everything in it is before the loop.
//
// Inside is what depends on an nd.microbatch, up to the nd.accumulate, and what only that reads: gathers of weights are
// inside, so that nothing of them stays in memory from one turn to the next, but for those that are marked as once a
// step (`nd.once`). Single numbers are computed once, but for those of gathered weights.
//
// Invariants: an operation before the loop reads only what is before it; one inside reads nothing that is behind it;
// one behind reads nothing that is inside but sums.
//
//===----------------------------------------------------------------------===//

#ifndef ND_DIALECT_ND_IR_MICROBATCHLOOP_H
#define ND_DIALECT_ND_IR_MICROBATCHLOOP_H

#include "nd/Dialect/ND/IR/ND.h"
#include "llvm/ADT/DenseMap.h"

namespace nd {

class MicrobatchLoop {
public:
  enum class Part { Before, Inside, Behind };

  /// Emits an error, and fails, where the borders do not make one loop.
  static llvm::FailureOr<MicrobatchLoop> get(mlir::Block &block);

  /// Microbatches of the step; 1 where there is no loop.
  int64_t getCount() const { return count; }
  bool exists() const { return hasBorders; }
  /// The part of an operation of the block, but for its terminator. The borders are inside.
  Part getPart(mlir::Operation *op) const { return parts.lookup(op); }
  /// How often it runs in a step.
  int64_t getTimes(mlir::Operation *op) const { return getPart(op) == Part::Inside ? count : 1; }

private:
  MicrobatchLoop() = default;
  mlir::LogicalResult findBorders(mlir::Block &block);
  mlir::LogicalResult divide(mlir::Block &block);

  int64_t count = 1;
  bool hasBorders = false;
  llvm::DenseMap<mlir::Operation *, Part> parts;
};

} // namespace nd

#endif // ND_DIALECT_ND_IR_MICROBATCHLOOP_H
