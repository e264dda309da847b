//===- Safetensors.h - Headers of safetensors files -------------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_LAUNCH_SAFETENSORS_H
#define ND_LAUNCH_SAFETENSORS_H

#include "nd/Launch/Manifest.h"
#include "llvm/ADT/StringMap.h"

namespace nd::launch {

/// A tensor in a file: its bytes are at `offset`, from the start of the file.
struct StoredTensor {
  int32_t dtype = ND_F32;
  llvm::SmallVector<int64_t, 4> shape;
  int64_t offset = 0, bytes = 0;
};

struct SafetensorsFile {
  std::string path;
  llvm::StringMap<StoredTensor> tensors;
};

/// Reads a header and checks it against the file: sizes, types, ranges, overlaps.
llvm::Expected<SafetensorsFile> readSafetensors(llvm::StringRef path);

/// A tensor to be written.
struct TensorToStore {
  std::string name;
  int32_t dtype;
  llvm::SmallVector<int64_t, 4> shape;
  int64_t offset = 0; ///< set by createSafetensors
};

/// Creates a file with its header and with room for all data, which ranks then write in place: a full disk shows here.
llvm::Error createSafetensors(llvm::StringRef path, std::vector<TensorToStore> &tensors);

/// "[2, 3]".
std::string shapeText(llvm::ArrayRef<int64_t> shape);

} // namespace nd::launch

#endif // ND_LAUNCH_SAFETENSORS_H
