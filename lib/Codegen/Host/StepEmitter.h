//===- StepEmitter.h - The step function and its tables ---------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_CODEGEN_HOST_STEPEMITTER_H
#define ND_CODEGEN_HOST_STEPEMITTER_H

#include "HostProgram.h"
#include "llvm/IR/Module.h"

namespace nd {

/// Fills the LLVM module of a rank program, whose data layout is set: descriptors, `nd_program`, the step function, and
/// `main`. Fails with an error at the operation that cannot be expressed.
mlir::LogicalResult emitStep(HostProgram &host, llvm::Module &module);

} // namespace nd

#endif // ND_CODEGEN_HOST_STEPEMITTER_H
