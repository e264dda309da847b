//===- Weights.h - Reading and saving parameters ----------------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_LAUNCH_WEIGHTS_H
#define ND_LAUNCH_WEIGHTS_H

#include "nd/Launch/Job.h"
#include "nd/Launch/Safetensors.h"
#include <map>

namespace nd::launch {

/// A folder of weights: the files that storages name, and model.safetensors or its index of several files.
class WeightsFolder {
public:
  explicit WeightsFolder(llvm::StringRef path) : path(path) {}

  /// Where the bytes of a parameter are. Its stored shape must be the program's.
  llvm::Expected<FileSlice> find(const TensorInfo &tensor, int32_t index);

private:
  llvm::Expected<const SafetensorsFile *> open(llvm::StringRef file);
  /// The file that holds `key` according to the index, or model.safetensors, or an empty string.
  llvm::Expected<std::string> lookUp(llvm::StringRef key);
  std::string fullPath(llvm::StringRef file) const;

  std::string path;
  std::map<std::string, SafetensorsFile> files;
  std::optional<llvm::json::Object> index;
};

/// The weights folder of a program, where `override` is empty.
std::string weightsFolderOf(const Manifest &manifest, llvm::StringRef override);

/// Where each parameter is read from; the types are those in the files.
llvm::Expected<std::vector<FileSlice>> planWeights(const Manifest &manifest, llvm::StringRef folder);

/// A model folder that is written at the end of a run, in full or not at all: into a temporary folder beside it, which
/// then takes its place.
class SaveFolder {
public:
  ~SaveFolder();

  /// Checks, before the run, that the folder can be written, and makes the temporary one. `dtype` is the type of the
  /// saved parameters, or empty: that of the files they came from.
  static llvm::Expected<std::unique_ptr<SaveFolder>> create(const Manifest &manifest, llvm::StringRef target,
                                                            llvm::StringRef weightsFolder,
                                                            llvm::ArrayRef<FileSlice> weights, llvm::StringRef dtype);

  /// Writes everything and puts the folder in place.
  llvm::Error write(Job &job);

private:
  explicit SaveFolder(const Manifest &manifest) : manifest(manifest) {}
  llvm::Error refuseForeignFiles() const;
  std::vector<std::string> filesToCopy() const;
  llvm::Error copyFiles();
  llvm::Error replaceTarget();

  const Manifest &manifest;
  std::string target, temporary, weightsFolder;
  int lock = -1;                     ///< on the temporary folder, which no other run may take
  std::map<int32_t, int32_t> dtypes; ///< of each parameter that is saved, by its index
  bool done = false;
};

} // namespace nd::launch

#endif // ND_LAUNCH_WEIGHTS_H
