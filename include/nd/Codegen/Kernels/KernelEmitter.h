//===- KernelEmitter.h - From a kernel region to a function -----*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// How a bufferized `nd.kernel` becomes a function. A kernel is looked at once its operands and results have memory
// layouts: `planKernel` says how much work it is and what memory it needs beside its operands, `emitKernel` emits it,
// and `kernelKey` tells which kernels can share one function.
//
//===----------------------------------------------------------------------===//

#ifndef ND_CODEGEN_KERNELS_KERNELEMITTER_H
#define ND_CODEGEN_KERNELS_KERNELEMITTER_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "nd/Dialect/ND/IR/ND.h"

#include <optional>
#include <string>

namespace nd {

/// A kernel and the layouts of its operands and results: static sizes and strides; an offset is not looked at, since
/// every argument points at element 0 of its operand. Booleans take one byte. Result i is computed in the buffer of
/// input
/// `*inPlaceOf[i]` where that is set (their layouts are equal then, and `canComputeInPlace` said yes).
struct KernelSpec {
  KernelOp op;
  llvm::SmallVector<mlir::MemRefType> inputTypes, resultTypes;
  llvm::SmallVector<std::optional<unsigned>> inPlaceOf;
};

/// Units of work of one launch; threads take static ranges whose bounds are multiples of `grain`, but for the last.
struct KernelPhase {
  int64_t extent = 0, grain = 1;
};

struct KernelPlan : KernelPhase {
  /// Memory of each thread.
  int64_t scratchBytes = 0;
  /// Memory shared by all threads of the launch and by its second phase; the last argument when not 0.
  int64_t workspaceBytes = 0;
  /// A second launch, of `<name>_finish` with the same arguments, after all of the first has been done.
  std::optional<KernelPhase> finish;
};

/// How the kernel is cut into units. The cut, and so every rounding, does not depend on the number of threads. Fails
/// with an error on the kernel when its region is not one loop nest (`nd-form-kernels` forms only such).
llvm::FailureOr<KernelPlan> planKernel(const KernelSpec &spec);

/// True when result `result` may share the buffer of input `input`: every element of the input is read for the last
/// time before, or in the same vector operation in which, the element of the result at its place is written.
bool canComputeInPlace(KernelOp op, unsigned result, unsigned input, mlir::MemRefType inputType,
                       mlir::MemRefType resultType);

/// Emits `func @name(args, lo, hi, scratch)` (`nd_kernel` of ABI.h), and `@name_finish` where the plan has a second
/// phase, in func, scf, arith, math, vector and llvm. Arguments: inputs, results that are not in place, then the
/// workspace if any.
llvm::LogicalResult emitKernel(mlir::OpBuilder &moduleBuilder, const KernelSpec &spec, const KernelPlan &plan,
                               llvm::StringRef name);

/// Kernels of equal keys share one function: the same region on the same layouts. A kernel that is one contiguous
/// run of elements is independent of its size.
std::string kernelKey(const KernelSpec &spec);

} // namespace nd

#endif // ND_CODEGEN_KERNELS_KERNELEMITTER_H
