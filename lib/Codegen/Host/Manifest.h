//===- Manifest.h - The program folder's manifest ---------------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_CODEGEN_HOST_MANIFEST_H
#define ND_CODEGEN_HOST_MANIFEST_H

#include "HostProgram.h"
#include "llvm/Support/raw_ostream.h"

namespace nd {

/// Writes the manifest that docs/manifest.md describes. `executable` is the file that every rank runs.
void writeManifest(HostProgram &host, llvm::StringRef target, llvm::StringRef executable, uint64_t executableBytes,
                   llvm::raw_ostream &out);

} // namespace nd

#endif // ND_CODEGEN_HOST_MANIFEST_H
