//===- CompileProgram.h - From rt to a program folder -----------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_CODEGEN_HOST_COMPILEPROGRAM_H
#define ND_CODEGEN_HOST_COMPILEPROGRAM_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <functional>
#include <string>

namespace nd {

struct HostCompileOptions {
  std::string outputFolder;
  /// Where libNDRuntimeCore.a and libNDRuntimeHost.a are.
  std::string runtimeFolder;
  /// Keeps the object files in the output folder.
  bool keepObjects = false;
  /// Told what has just been done; called from the calling thread.
  std::function<void(llvm::StringRef)> progress = [](llvm::StringRef) {};
};

/// Compiles a planned rt.program (after rt-plan-memory) to `outputFolder`: one executable that all ranks run and the
/// manifest. What the folder held under these names is replaced only when everything has been built. Errors at
/// operations are diagnostics.
llvm::Error compileHostProgram(mlir::ModuleOp module, const HostCompileOptions &options);

} // namespace nd

#endif // ND_CODEGEN_HOST_COMPILEPROGRAM_H
