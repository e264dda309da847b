//===- StoreFile.h - Tensors of a program in one file -----------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_LAUNCH_STOREFILE_H
#define ND_LAUNCH_STOREFILE_H

#include "nd/Launch/Job.h"

namespace nd::launch {

/// A tensor of the program that is written under `name`. Parts of one tensor of the model have one name.
struct NamedTensor {
  int32_t index, dtype;
  std::string name;
};

/// Creates a safetensors file with room for everything and returns where in it each tensor of the program goes.
llvm::Expected<std::vector<FileSlice>> createStoreFile(const Manifest &manifest, llvm::StringRef path,
                                                       llvm::ArrayRef<NamedTensor> tensors);

} // namespace nd::launch

#endif // ND_LAUNCH_STOREFILE_H
