//===- KernelSchedule.h - Stages of a row, and memory -----------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// A row is computed in stages, each one loop over the columns. Stage s performs the row reductions whose operands are
// of level s and stores the full results of level s; column reductions are accumulated in the last stage. What an
// earlier stage has computed is computed again where that is cheap, loaded from the result it was stored to, or kept:
// in a result's row that is written later anyway, or in the thread's scratch.
//
//===----------------------------------------------------------------------===//

#ifndef ND_LIB_CODEGEN_KERNELS_KERNELSCHEDULE_H
#define ND_LIB_CODEGEN_KERNELS_KERNELSCHEDULE_H

#include "KernelProgram.h"

namespace nd {

struct KernelSchedule {
  explicit KernelSchedule(const KernelProgram &program);

  /// A value that a stage stores and later stages load: in root `root`'s row, or in scratch slot `slot`.
  struct Kept {
    unsigned stage;
    const Root *root = nullptr;
    std::optional<unsigned> slot;
  };

  unsigned numStages = 0;
  llvm::DenseMap<const Node *, Kept> kept;
  /// Bytes of an element of each scratch slot.
  llvm::SmallVector<int64_t> slots;
  /// Full roots: the stage that stores them, and the first that writes to their memory.
  llvm::DenseMap<const Root *, unsigned> storeStage, firstWrite;
  /// Nodes on columns: the last stage that computes them.
  llvm::DenseMap<const Node *, unsigned> lastUse;

private:
  void visit(Node *node, unsigned stage);
  void keepInResults(const KernelProgram &program);

  llvm::DenseMap<const Node *, unsigned> firstUse;
  llvm::DenseMap<const Node *, unsigned> lastReload;
};

/// Bytes of an element in memory.
int64_t elementBytes(mlir::Type type);

} // namespace nd

#endif // ND_LIB_CODEGEN_KERNELS_KERNELSCHEDULE_H
