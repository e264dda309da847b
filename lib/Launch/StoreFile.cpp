//===- StoreFile.cpp - Tensors of a program in one file -------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "nd/Launch/StoreFile.h"
#include "nd/Launch/Safetensors.h"
#include "llvm/ADT/StringSet.h"

using namespace llvm;
using namespace nd::launch;

Expected<std::vector<FileSlice>> nd::launch::createStoreFile(const Manifest &manifest, StringRef path,
                                                             ArrayRef<NamedTensor> tensors) {
  std::vector<TensorToStore> stored;
  StringSet<> taken;
  for (const NamedTensor &tensor : tensors)
    if (taken.insert(tensor.name).second)
      stored.push_back({tensor.name, tensor.dtype, manifest.tensors[tensor.index].modelShape()});
  if (Error error = createSafetensors(path, stored))
    return std::move(error);
  StringMap<const TensorToStore *> byName;
  for (const TensorToStore &tensor : stored)
    byName[tensor.name] = &tensor;
  std::vector<FileSlice> slices;
  for (const NamedTensor &tensor : tensors) {
    const TensorToStore &place = *byName[tensor.name];
    slices.push_back({tensor.index, place.dtype, place.offset, path.str(), manifest.tensors[tensor.index].part});
  }
  return slices;
}
