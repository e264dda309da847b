//===- Road.h - From a model to a program, cached ---------------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_LAUNCH_ROAD_H
#define ND_LAUNCH_ROAD_H

#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace nd::launch {

/// What a program is compiled from.
struct RoadRequest {
  std::string model; ///< model.onnx
  int64_t batch = 0, sequence = 0;
  std::string target = "host";
  std::vector<std::string> stepArguments; ///< for nd-opt, as given
  std::string toolsFolder;                ///< where nd-import, nd-opt and nd-compile are
};

/// The cache's folder: ND_CACHE, or nd in the user's cache folder.
std::string cacheFolder();

/// Imports, differentiates, shards and compiles a model, and returns the program folder. Equal requests of an equal
/// model by equal tools find it in the cache, by a hash of all of that; programs appear there in full or not at all.
llvm::Expected<std::string> buildProgram(const RoadRequest &request);

} // namespace nd::launch

#endif // ND_LAUNCH_ROAD_H
