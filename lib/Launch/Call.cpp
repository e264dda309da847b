//===- Call.cpp - Running a program once on given tensors -----------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "nd/Launch/Call.h"
#include "nd/Launch/Job.h"
#include "nd/Launch/Safetensors.h"
#include "nd/Launch/StoreFile.h"
#include "nd/Runtime/Core/Dtype.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/FileSystem.h"

using namespace llvm;
using namespace nd::launch;

namespace {

constexpr const char *bareArguments[] = {"input", "weight", "scalar"};
constexpr const char *bareResults[] = {"output", "metric", "weight"};

// A rank's coordinates are neither: the runtime fills them in.
bool isArgument(StringRef kind) {
  return kind != "output" && kind != "metric" && kind != "gradient" && kind != "coordinate";
}
bool isResult(StringRef kind) { return kind != "input" && kind != "scalar" && kind != "coordinate"; }

/// The tensor of that kind and name in the model: one of the program, or its parts.
std::vector<int32_t> findTensors(const Manifest &manifest, StringRef kind, StringRef name) {
  std::vector<int32_t> found;
  for (size_t i = 0; i < manifest.tensors.size(); ++i)
    if (manifest.tensors[i].kind == kind && manifest.tensors[i].modelName() == name)
      found.push_back(static_cast<int32_t>(i));
  return found;
}

/// The argument that a name of the input file means; nothing when there is none.
std::vector<int32_t> findArgument(const Manifest &manifest, StringRef name) {
  auto [kind, rest] = name.split(':');
  std::vector<int32_t> found;
  if (!rest.empty() && isArgument(kind))
    found = findTensors(manifest, kind, rest);
  for (const char *bare : bareArguments)
    if (found.empty())
      found = findTensors(manifest, bare, name);
  return found;
}

Expected<std::vector<FileSlice>> matchArguments(const Manifest &manifest, const SafetensorsFile &file) {
  std::vector<FileSlice> slices;
  for (const auto &entry : file.tensors) {
    std::vector<int32_t> indices = findArgument(manifest, entry.first());
    if (indices.empty()) {
      std::string known;
      for (const TensorInfo &tensor : manifest.tensors)
        if (isArgument(tensor.kind) && tensor.part.offset == 0)
          known += (known.empty() ? "" : ", ") + tensor.kind + ":" + tensor.modelName();
      return makeError(file.path + ": the program has no argument '" + entry.first() + "'; it has " + known);
    }
    const TensorInfo &tensor = manifest.tensors[indices.front()];
    const StoredTensor &stored = entry.second;
    if (stored.shape != tensor.modelShape())
      return makeError(file.path + ": '" + entry.first() + "' has shape " + shapeText(stored.shape) +
                       "; the program's " + tensor.describe() + " has " + shapeText(tensor.modelShape()));
    bool floats = stored.dtype <= ND_F64 && tensor.dtype <= ND_F64;
    if (stored.dtype != tensor.dtype && !floats)
      return makeError(file.path + ": '" + entry.first() + "' is " + nd::rt::dtypeName(stored.dtype) +
                       "; the program's " + tensor.describe() + " is " + nd::rt::dtypeName(tensor.dtype));
    for (int32_t index : indices)
      slices.push_back({index, stored.dtype, stored.offset, file.path, manifest.tensors[index].part});
  }
  return slices;
}

} // namespace

std::vector<std::string> nd::launch::resultNames(const Manifest &manifest) {
  std::vector<std::string> names(manifest.tensors.size());
  StringMap<StringRef> taken; // by which kind
  for (const char *bare : bareResults)
    for (size_t i = 0; i < names.size(); ++i)
      if (const TensorInfo &tensor = manifest.tensors[i];
          tensor.kind == bare && taken.try_emplace(tensor.modelName(), bare).first->second == bare)
        names[i] = tensor.modelName();
  for (size_t i = 0; i < names.size(); ++i)
    if (names[i].empty() && isResult(manifest.tensors[i].kind))
      names[i] = manifest.tensors[i].kind + ":" + manifest.tensors[i].modelName();
  return names;
}

Error nd::launch::callProgram(const Manifest &manifest, StringRef input, StringRef output, int threads,
                              bool ignoreMemory) {
  if (sys::fs::exists(output) && !sys::fs::is_regular_file(output))
    return makeError("-o " + output + " exists and is not a file");
  Expected<SafetensorsFile> file = readSafetensors(input);
  if (!file)
    return file.takeError();
  Expected<std::vector<FileSlice>> arguments = matchArguments(manifest, *file);
  if (!arguments)
    return arguments.takeError();

  JobOptions options;
  options.threads = threads;
  options.ignoreMemory = ignoreMemory;
  Expected<std::unique_ptr<Job>> job = Job::start(manifest, options);
  if (!job)
    return job.takeError();
  if (Error error = (*job)->load(*arguments))
    return error;
  if (Error error = (*job)->run(1, /*isCall=*/true, {}))
    return error;

  std::vector<std::string> names = resultNames(manifest);
  std::vector<NamedTensor> tensors;
  for (size_t i = 0; i < names.size(); ++i)
    if (!names[i].empty())
      tensors.push_back({static_cast<int32_t>(i), manifest.tensors[i].dtype, names[i]});
  std::string temporary = (output + ".writing").str();
  auto writeResults = [&]() -> Error {
    Expected<std::vector<FileSlice>> slices = createStoreFile(manifest, temporary, tensors);
    if (!slices)
      return slices.takeError();
    if (Error error = (*job)->save(*slices))
      return error;
    if (manifest.ranks > 1)
      if (Error error = (*job)->verify(*slices))
        return error;
    if (Error error = (*job)->finish())
      return error;
    if (std::error_code code = sys::fs::rename(temporary, output))
      return makeError("cannot write " + output + ": " + code.message());
    return Error::success();
  };
  Error error = writeResults();
  if (error)
    sys::fs::remove(temporary);
  return error;
}
