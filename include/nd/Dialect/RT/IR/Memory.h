//===- Memory.h - Which bytes a buffer is -----------------------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_DIALECT_RT_IR_MEMORY_H
#define ND_DIALECT_RT_IR_MEMORY_H

#include "nd/Dialect/RT/IR/RT.h"

namespace nd::rt {

/// Bytes [begin, end) of the arena, or of a root that has no place in it (yet).
struct Memory {
  mlir::Operation *space = nullptr; ///< the root; null in the arena
  int64_t begin = 0, end = 0;

  bool overlaps(const Memory &other) const { return space == other.space && begin < other.end && other.begin < end; }
};

/// From the first byte of a buffer to its last, with what its strides leave out. A row of a loop is one of many: all of
/// the sliced buffer counts.
Memory getMemory(mlir::Value buffer);

/// Operands of an operation that are memory, by what it does with them; of what does not say, all are both.
struct Accesses {
  explicit Accesses(mlir::Operation *op);
  llvm::SmallVector<mlir::Value> read, written;
};

} // namespace nd::rt

#endif // ND_DIALECT_RT_IR_MEMORY_H
