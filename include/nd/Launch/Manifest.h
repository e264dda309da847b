//===- Manifest.h - A program folder ----------------------------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_LAUNCH_MANIFEST_H
#define ND_LAUNCH_MANIFEST_H

#include "nd/Runtime/Core/ABI.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"
#include <optional>
#include <string>
#include <vector>

namespace nd::launch {

/// Where the bytes of a parameter lie, relative to a weights folder: a key of a safetensors file, or a range of a file.
struct Storage {
  std::string file, key;
  int64_t offset = 0, length = 0;
};

/// Elements [offset, offset + own size) of dimension `dim` of the model's tensor `name`, which has `size` there; size
/// 0: the tensor is whole.
struct PartOf {
  std::string name;
  int64_t dim = 0, offset = 0, size = 0;
};

struct TensorInfo {
  std::string kind, name;
  int32_t dtype = ND_F32;
  llvm::SmallVector<int64_t, 4> globalShape;
  uint64_t fingerprint = 0; ///< of everything that the executable's table says of it too
  std::optional<Storage> storage;
  PartOf part;

  std::string describe() const { return kind + " '" + name + "'"; }
  /// The name and shape of the tensor in the user's model, which this one may be a part of.
  const std::string &modelName() const { return part.size ? part.name : name; }
  llvm::SmallVector<int64_t, 4> modelShape() const;
};

struct CollectiveInfo {
  std::string kind, name, location;
  std::string group; ///< of ranks, as metrics name it; empty: no two ranks
  bool isScalar = false;
};

/// manifest.json; docs/manifest.md says what the keys mean.
struct Manifest {
  std::string folder;
  std::string name;
  int64_t abi = 0;
  std::vector<std::string> axes;
  std::vector<int64_t> axisSizes;
  int64_t ranks = 1;
  std::vector<std::string> programs; ///< paths of executables
  std::vector<int64_t> rankProgram;
  std::vector<TensorInfo> tensors;
  std::vector<CollectiveInfo> collectives;
  llvm::json::Object model, step;
  int64_t arenaBytes = 0; ///< planned, of a rank; 0: unknown
  int64_t threadScratchBytes = 0;

  /// That of the mesh; the executables have the same.
  uint64_t meshFingerprint() const;
};

/// Reads and checks the manifest of a program folder.
llvm::Expected<Manifest> readManifest(llvm::StringRef folder);

/// Names of types as IR and manifests write them.
llvm::Expected<int32_t> parseDtype(llvm::StringRef name);

/// An error that says `message`; the launcher prints it and exits with 1.
llvm::Error makeError(const llvm::Twine &message);

/// Parses JSON that may be damaged: what is nested so deep that the parser's recursion would not end well is refused.
llvm::Expected<llvm::json::Value> parseJson(llvm::StringRef text);

/// The contents of a whole JSON file, which must be an object.
llvm::Expected<llvm::json::Object> readJsonObject(llvm::StringRef path);

} // namespace nd::launch

#endif // ND_LAUNCH_MANIFEST_H
