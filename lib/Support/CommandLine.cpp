//===- CommandLine.cpp - What all tools do with their options -------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "nd/Support/CommandLine.h"
#include "llvm/Support/CommandLine.h"

void nd::hideLibraryOptions() {
  for (auto &entry : llvm::cl::getRegisteredOptions())
    entry.second->setHiddenFlag(llvm::cl::Hidden);
}
