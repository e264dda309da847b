//===- ManifestTensors.h - The tensors of a manifest ------------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_LIB_LAUNCH_MANIFESTTENSORS_H
#define ND_LIB_LAUNCH_MANIFESTTENSORS_H

#include "nd/Launch/Manifest.h"

namespace nd::launch {

/// Reads entry `index` of 'tensors' and appends it to the manifest, whose mesh is known. `path` is for messages.
llvm::Error readTensor(llvm::StringRef path, Manifest &manifest, const llvm::json::Value &value, size_t index);

/// The parts of each tensor of the model tile it, so that loading and saving leave nothing out.
llvm::Error checkParts(llvm::StringRef path, const Manifest &manifest);

} // namespace nd::launch

#endif // ND_LIB_LAUNCH_MANIFESTTENSORS_H
