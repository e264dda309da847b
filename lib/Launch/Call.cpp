//===- Call.cpp - Running a program once on given tensors -----------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "nd/Launch/Call.h"
#include "nd/Launch/Job.h"
#include "nd/Launch/Safetensors.h"
#include "nd/Runtime/Core/Dtype.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FileSystem.h"

using namespace llvm;
using namespace nd::launch;

namespace {

constexpr const char *bareArguments[] = {"input", "weight", "scalar"};
constexpr const char *bareResults[] = {"output", "metric", "weight"};

bool isArgument(StringRef kind) { return kind != "output" && kind != "metric" && kind != "gradient"; }
bool isResult(StringRef kind) { return kind != "input" && kind != "scalar"; }

int32_t findTensor(const Manifest &manifest, StringRef kind, StringRef name) {
  for (size_t i = 0; i < manifest.tensors.size(); ++i)
    if (manifest.tensors[i].kind == kind && manifest.tensors[i].name == name)
      return static_cast<int32_t>(i);
  return -1;
}

/// The argument that a name of the input file means, or -1.
int32_t findArgument(const Manifest &manifest, StringRef name) {
  auto [kind, rest] = name.split(':');
  if (!rest.empty() && isArgument(kind))
    if (int32_t found = findTensor(manifest, kind, rest); found >= 0)
      return found;
  for (const char *bare : bareArguments)
    if (int32_t found = findTensor(manifest, bare, name); found >= 0)
      return found;
  return -1;
}

Expected<std::vector<FileSlice>> matchArguments(const Manifest &manifest, const SafetensorsFile &file) {
  std::vector<FileSlice> slices;
  for (const auto &entry : file.tensors) {
    int32_t index = findArgument(manifest, entry.first());
    if (index < 0) {
      std::string known;
      for (const TensorInfo &tensor : manifest.tensors)
        if (isArgument(tensor.kind))
          known += (known.empty() ? "" : ", ") + tensor.kind + ":" + tensor.name;
      return makeError(file.path + ": the program has no argument '" + entry.first() + "'; it has " + known);
    }
    const TensorInfo &tensor = manifest.tensors[index];
    const StoredTensor &stored = entry.second;
    if (stored.shape != tensor.globalShape)
      return makeError(file.path + ": '" + entry.first() + "' has shape " + shapeText(stored.shape) +
                       "; the program's " + tensor.describe() + " has " + shapeText(tensor.globalShape));
    bool floats = stored.dtype <= ND_F64 && tensor.dtype <= ND_F64;
    if (stored.dtype != tensor.dtype && !floats)
      return makeError(file.path + ": '" + entry.first() + "' is " + nd::rt::dtypeName(stored.dtype) +
                       "; the program's " + tensor.describe() + " is " + nd::rt::dtypeName(tensor.dtype));
    slices.push_back({index, stored.dtype, stored.offset, file.path});
  }
  return slices;
}

} // namespace

std::vector<std::string> nd::launch::resultNames(const Manifest &manifest) {
  std::vector<std::string> names(manifest.tensors.size());
  StringSet<> taken;
  for (const char *bare : bareResults)
    for (size_t i = 0; i < names.size(); ++i)
      if (manifest.tensors[i].kind == bare && taken.insert(manifest.tensors[i].name).second)
        names[i] = manifest.tensors[i].name;
  for (size_t i = 0; i < names.size(); ++i)
    if (names[i].empty() && isResult(manifest.tensors[i].kind))
      names[i] = manifest.tensors[i].kind + ":" + manifest.tensors[i].name;
  return names;
}

Error nd::launch::callProgram(const Manifest &manifest, StringRef input, StringRef output, int threads) {
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
  Expected<std::unique_ptr<Job>> job = Job::start(manifest, options);
  if (!job)
    return job.takeError();
  if (Error error = (*job)->load(*arguments))
    return error;
  if (Error error = (*job)->run(1, /*isCall=*/true, {}))
    return error;

  std::vector<std::string> names = resultNames(manifest);
  std::vector<TensorToStore> tensors;
  for (size_t i = 0; i < names.size(); ++i)
    if (!names[i].empty())
      tensors.push_back({names[i], manifest.tensors[i].dtype, manifest.tensors[i].globalShape});
  std::string temporary = (output + ".writing").str();
  auto writeResults = [&]() -> Error {
    if (Error error = createSafetensors(temporary, tensors))
      return error;
    std::vector<FileSlice> slices;
    for (const TensorToStore &tensor : tensors) {
      auto index = static_cast<int32_t>(llvm::find(names, tensor.name) - names.begin());
      slices.push_back({index, tensor.dtype, tensor.offset, temporary});
    }
    if (Error error = (*job)->save(slices))
      return error;
    if (manifest.ranks > 1)
      if (Error error = (*job)->verify(slices))
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
