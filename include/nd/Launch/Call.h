//===- Call.h - Running a program once on given tensors ---------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_LAUNCH_CALL_H
#define ND_LAUNCH_CALL_H

#include "nd/Launch/Manifest.h"

namespace nd::launch {

/// The name under which a call's file holds each result, empty for tensors that are none; docs/manifest.md has the
/// rule.
std::vector<std::string> resultNames(const Manifest &manifest);

/// Runs the program once: arguments from one safetensors file, results into another.
llvm::Error callProgram(const Manifest &manifest, llvm::StringRef input, llvm::StringRef output, int threads,
                        bool ignoreMemory);

} // namespace nd::launch

#endif // ND_LAUNCH_CALL_H
