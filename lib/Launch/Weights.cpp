//===- Weights.cpp - Reading parameters -----------------------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "nd/Launch/Weights.h"
#include "nd/Runtime/Core/Dtype.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace llvm;
using namespace nd::launch;

namespace {

/// Files are named relative to the folder and lie in it.
bool staysInside(StringRef file) {
  if (sys::path::is_absolute(file))
    return false;
  return llvm::none_of(make_range(sys::path::begin(file), sys::path::end(file)),
                       [](StringRef part) { return part == ".."; });
}

} // namespace

std::string nd::launch::weightsFolderOf(const Manifest &manifest, StringRef override) {
  if (!override.empty())
    return override.str();
  StringRef named = manifest.model.getString("weights_dir").value_or("");
  SmallString<256> folder;
  if (!sys::path::is_absolute(named))
    folder = manifest.folder;
  sys::path::append(folder, named);
  return std::string(folder);
}

std::string WeightsFolder::fullPath(StringRef file) const {
  SmallString<256> full(path);
  sys::path::append(full, file);
  return std::string(full);
}

Expected<const SafetensorsFile *> WeightsFolder::open(StringRef file) {
  if (!staysInside(file))
    return makeError("the file '" + file + "' does not lie in the weights folder " + path);
  auto found = files.find(file.str());
  if (found != files.end())
    return &found->second;
  Expected<SafetensorsFile> opened = readSafetensors(fullPath(file));
  if (!opened)
    return opened.takeError();
  return &files.emplace(file.str(), std::move(*opened)).first->second;
}

Expected<std::string> WeightsFolder::lookUp(StringRef key) {
  std::string indexPath = fullPath("model.safetensors.index.json");
  if (!index && sys::fs::exists(indexPath)) {
    Expected<json::Object> object = readJsonObject(indexPath);
    if (!object)
      return object.takeError();
    json::Object *map = object->getObject("weight_map");
    if (!map)
      return makeError(indexPath + " has no \"weight_map\"");
    index = std::move(*map);
  }
  if (index)
    return index->getString(key).value_or("").str();
  return sys::fs::exists(fullPath("model.safetensors")) ? "model.safetensors" : "";
}

Expected<FileSlice> WeightsFolder::find(const TensorInfo &tensor, int32_t tensorIndex) {
  const Storage &storage = *tensor.storage;
  if (storage.key.empty()) { // a range of a file, in the program's type
    uint64_t size = 0;
    std::string file = fullPath(storage.file);
    if (!staysInside(storage.file))
      return makeError("the file '" + storage.file + "' of " + tensor.describe() +
                       " does not lie in the weights folder " + path);
    if (std::error_code code = sys::fs::file_size(file, size))
      return makeError("cannot read " + tensor.describe() + " from " + file + ": " + code.message() +
                       "; give --weights DIR");
    int64_t bytes = nd::rt::dtypeBytes(tensor.dtype);
    for (int64_t extent : tensor.modelShape())
      bytes *= extent;
    if (storage.length != bytes || storage.offset < 0 || storage.offset > static_cast<int64_t>(size) - bytes)
      return makeError(tensor.describe() + " needs " + Twine(bytes) + " bytes; " + Twine(storage.length) + " at " +
                       Twine(storage.offset) + " of " + file + " are not that");
    return FileSlice{tensorIndex, tensor.dtype, storage.offset, file, tensor.part};
  }
  // The file that the export named, then whatever the folder's index says; saved folders use the model's own names.
  for (StringRef key : {StringRef(storage.key), StringRef(tensor.modelName())}) {
    std::vector<std::string> candidates;
    if (sys::fs::exists(fullPath(storage.file)))
      candidates.push_back(storage.file);
    Expected<std::string> indexed = lookUp(key);
    if (!indexed)
      return indexed.takeError();
    if (!indexed->empty())
      candidates.push_back(*indexed);
    for (const std::string &candidate : candidates) {
      Expected<const SafetensorsFile *> file = open(candidate);
      if (!file)
        return file.takeError();
      auto stored = (*file)->tensors.find(key);
      if (stored == (*file)->tensors.end())
        continue;
      if (stored->second.shape != tensor.modelShape())
        return makeError((*file)->path + ": '" + key + "' has shape " + shapeText(stored->second.shape) +
                         "; the model's has " + shapeText(tensor.modelShape()) +
                         ": these are weights of another model");
      if (stored->second.dtype > ND_F64)
        return makeError((*file)->path + ": '" + key + "' holds integers (" + nd::rt::dtypeName(stored->second.dtype) +
                         "); quantized weights cannot be trained");
      return FileSlice{tensorIndex, stored->second.dtype, stored->second.offset, (*file)->path, tensor.part};
    }
  }
  return makeError("the weights folder " + path + " has no '" + storage.key + "' for " + tensor.describe() +
                   "; give the right one with --weights DIR");
}

Expected<std::vector<FileSlice>> nd::launch::planWeights(const Manifest &manifest, StringRef folder) {
  WeightsFolder weights(folder);
  std::vector<FileSlice> slices;
  for (size_t i = 0; i < manifest.tensors.size(); ++i) {
    const TensorInfo &tensor = manifest.tensors[i];
    if (tensor.kind != "weight")
      continue;
    if (!tensor.storage)
      return makeError(tensor.describe() +
                       " has no stored values (exported with --no-weights?); export the model with its "
                       "weights or with --random-init");
    Expected<FileSlice> slice = weights.find(tensor, static_cast<int32_t>(i));
    if (!slice)
      return slice.takeError();
    slices.push_back(std::move(*slice));
  }
  return slices;
}
