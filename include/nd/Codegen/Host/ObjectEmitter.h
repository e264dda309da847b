//===- ObjectEmitter.h - From MLIR to an object file ------------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_CODEGEN_HOST_OBJECTEMITTER_H
#define ND_CODEGEN_HOST_OBJECTEMITTER_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

namespace mlir {
class DialectRegistry;
class ModuleOp;
} // namespace mlir

namespace nd {

/// Levels of x86-64 that objects are compiled for (`nd_cpu_level` of ABI.h). The names of kernels end in `_v3` and
/// `_v4`.
enum class CpuLevel { V3, V4 };

llvm::StringRef cpuLevelSuffix(CpuLevel level);

/// What `emitObject` needs registered in the context of the module: the translations to LLVM IR.
void registerObjectEmission(mlir::DialectRegistry &registry);

/// Compiles a module of func, scf, arith, math, vector and llvm to an object file at `path`. `suffix` is appended to
/// the name of every function that the module defines. The module is left as it was. Fails when the object would need a
/// function that no library has (a compiler's helper whose name starts with `__`).
llvm::Error emitObject(mlir::ModuleOp module, CpuLevel level, llvm::StringRef path, llvm::StringRef suffix = "");

} // namespace nd

#endif // ND_CODEGEN_HOST_OBJECTEMITTER_H
