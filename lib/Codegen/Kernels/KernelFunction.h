//===- KernelFunction.h - Signature of a kernel -----------------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_LIB_CODEGEN_KERNELS_KERNELFUNCTION_H
#define ND_LIB_CODEGEN_KERNELS_KERNELFUNCTION_H

#include "VectorMath.h"
#include "nd/Codegen/Kernels/KernelEmitter.h"

namespace nd {

/// The values inside a kernel's function. A result in place has the pointer of its input.
struct KernelFunction {
  llvm::SmallVector<mlir::Value> inputs, results;
  mlir::Value workspace, lo, hi, scratch;
};

/// Emits `func @name(args, lo, hi, scratch)`, which takes the pointers from `args` and calls a function whose pointer
/// arguments do not alias; `body` fills that one.
void emitFunction(mlir::OpBuilder &builder, const KernelSpec &spec, bool hasWorkspace, llvm::StringRef name,
                  llvm::function_ref<void(LaneBuilder &, KernelFunction &)> body);

} // namespace nd

#endif // ND_LIB_CODEGEN_KERNELS_KERNELFUNCTION_H
