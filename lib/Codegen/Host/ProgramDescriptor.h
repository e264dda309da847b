//===- ProgramDescriptor.h - What a program says of itself ------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_LIB_CODEGEN_HOST_PROGRAMDESCRIPTOR_H
#define ND_LIB_CODEGEN_HOST_PROGRAMDESCRIPTOR_H

#include "ConstantBuilder.h"
#include "HostProgram.h"

namespace nd {

/// The step function, and the descriptors of what it calls, in the order of their ids.
struct StepParts {
  llvm::Constant *step;
  llvm::ArrayRef<llvm::Constant *> gemms, attentions, collectives;
};

/// Builds an `nd_program` (include/nd/Runtime/Core/ABI.h), field by field.
class ProgramDescriptor {
public:
  ProgramDescriptor(HostProgram &host, llvm::Module &module, ConstantBuilder &constants)
      : host(host), module(module), c(constants) {}

  llvm::Constant *build(const StepParts &parts);

private:
  llvm::Constant *tensorDescriptor(rt::TensorOp tensor);
  llvm::Constant *scheduleDescriptor();
  /// The kernels of a CPU level, in order.
  llvm::Constant *kernelTable(llvm::StringRef level);

  HostProgram &host;
  llvm::Module &module;
  ConstantBuilder &c;
};

} // namespace nd

#endif // ND_LIB_CODEGEN_HOST_PROGRAMDESCRIPTOR_H
