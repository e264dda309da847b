//===- KernelTable.h - The distinct kernels of a program --------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_CODEGEN_LOWERING_KERNELTABLE_H
#define ND_CODEGEN_LOWERING_KERNELTABLE_H

#include "nd/Dialect/ND/IR/ND.h"
#include "nd/Dialect/RT/IR/RT.h"
#include "llvm/ADT/StringMap.h"

namespace nd {

/// An rt.kernel and the shared memory that one launch of it needs.
struct KernelEntry {
  rt::KernelOp kernel;
  int64_t workspaceBytes = 0;
};

/// Creates one `rt.kernel` for each distinct region on given layouts. Two kernels of one key but different shapes stay
/// apart here, because a launch knows its extent by its kernel; they share one function when code is emitted.
class KernelTable {
public:
  explicit KernelTable(mlir::OpBuilder builder) : builder(builder) {}

  llvm::FailureOr<KernelEntry> get(KernelOp op, llvm::ArrayRef<mlir::MemRefType> inputs,
                                   llvm::ArrayRef<mlir::MemRefType> results, llvm::ArrayRef<int64_t> inPlace);
  /// The kernel that copies a tensor from one layout to another.
  llvm::FailureOr<KernelEntry> getCopy(mlir::Location loc, mlir::MemRefType from, mlir::MemRefType to);

private:
  mlir::OpBuilder builder;
  llvm::StringMap<KernelEntry> entries;
};

} // namespace nd

#endif // ND_CODEGEN_LOWERING_KERNELTABLE_H
