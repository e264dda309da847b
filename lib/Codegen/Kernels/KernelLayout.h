//===- KernelLayout.h - A kernel on its buffers -----------------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_LIB_CODEGEN_KERNELS_KERNELLAYOUT_H
#define ND_LIB_CODEGEN_KERNELS_KERNELLAYOUT_H

#include "KernelSchedule.h"
#include "nd/Codegen/Kernels/KernelEmitter.h"

namespace nd {

/// Rows of a block whose column reductions are accumulated together: one load and store of the sums for so many rows.
constexpr int64_t rowsPerBlock = 4;
/// Elements of one unit of a total reduction, and grain of kernels that are cut by elements.
constexpr int64_t totalChunk = 16384;
constexpr int64_t elementGrain = 64;

/// A kernel's program on given layouts.
struct KernelLayout {
  static std::unique_ptr<KernelLayout> create(const KernelSpec &spec, std::string &error);

  std::unique_ptr<KernelProgram> program;
  std::unique_ptr<KernelSchedule> schedule;
  llvm::SmallVector<llvm::SmallVector<int64_t>> inputStrides, resultStrides;
  /// Lanes of a vector of columns.
  int64_t lanes = 1;
  /// Rows of a chunk that has its own partial sums, and the number of chunks; 0 without column reductions in rows.
  int64_t chunkRows = 0, chunks = 0;

  /// Bytes of the thread's scratch for one row, and for all rows of a block.
  int64_t scratchRowBytes() const;
  /// Offset in the workspace of the partial results of root `root`, and the size of all.
  int64_t partialOffset(const Root &root) const;
  int64_t partialBytes() const;
  KernelProgram::Form form() const { return program->form; }
};

/// The type of the partial sums of a reduction over rows or everything.
mlir::Type sumType(const Root &root);

/// The kernel of a region that holds one operation of its own kind (`isSpecial`), if it is one.
mlir::Operation *specialOf(KernelOp op);
KernelPlan planSpecial(mlir::Operation *op, const KernelSpec &spec);
void emitSpecial(mlir::OpBuilder &builder, mlir::Operation *op, const KernelSpec &spec, llvm::StringRef name);
void emitProgram(mlir::OpBuilder &builder, const KernelLayout &layout, const KernelSpec &spec, const KernelPlan &plan,
                 llvm::StringRef name);

} // namespace nd

#endif // ND_LIB_CODEGEN_KERNELS_KERNELLAYOUT_H
