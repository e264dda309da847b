//===- StageDump.h - The IR after each pass, as files -----------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_SUPPORT_STAGEDUMP_H
#define ND_SUPPORT_STAGEDUMP_H

#include "mlir/Pass/PassManager.h"
#include "llvm/Support/Error.h"

namespace nd {

/// Makes `pm` write the module after each of its passes to `folder`/NN-pass-name.mlir, numbered from 00, the input. No
/// two passes may run at a time, as in a module of one function. Creates the folder.
llvm::Error dumpStages(mlir::PassManager &pm, llvm::StringRef folder);

} // namespace nd

#endif // ND_SUPPORT_STAGEDUMP_H
