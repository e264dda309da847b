//===- Linker.h - Links rank executables ------------------------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_CODEGEN_HOST_LINKER_H
#define ND_CODEGEN_HOST_LINKER_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"

#include <string>

namespace nd {

/// Links objects with the runtime's static libraries to an executable, by the system's C++ compiler.
llvm::Error linkExecutable(llvm::ArrayRef<std::string> objects, llvm::StringRef runtimeFolder, llvm::StringRef output);

} // namespace nd

#endif // ND_CODEGEN_HOST_LINKER_H
