//===- SaveFolder.cpp - A model folder, in full or not at all -------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "JobProcess.h"
#include "nd/Launch/StoreFile.h"
#include "nd/Launch/Weights.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <unistd.h>

using namespace llvm;
using namespace nd::launch;

SaveFolder::~SaveFolder() {
  if (!temporary.empty() && !done)
    sys::fs::remove_directories(temporary);
  if (lock >= 0)
    ::close(lock);
}

Expected<std::unique_ptr<SaveFolder>> SaveFolder::create(const Manifest &manifest, StringRef target,
                                                         StringRef weightsFolder, ArrayRef<FileSlice> weights,
                                                         StringRef dtype) {
  std::unique_ptr<SaveFolder> folder(new SaveFolder(manifest));
  SmallString<256> path(target);
  while (path.size() > 1 && path.back() == '/')
    path.pop_back();
  // A link stays a link: what it points at is replaced.
  if (SmallString<256> real; !sys::fs::real_path(path, real))
    path = real;
  folder->target = std::string(path);
  folder->weightsFolder = weightsFolder.str();
  for (const FileSlice &slice : weights)
    folder->dtypes[slice.tensor] = slice.dtype;
  if (!dtype.empty()) {
    Expected<int32_t> parsed = parseDtype(dtype);
    if (!parsed || *parsed > ND_F16) {
      consumeError(parsed.takeError());
      return makeError("--save-dtype=" + dtype + ": f32, bf16 and f16 can be saved");
    }
    for (auto &entry : folder->dtypes)
      entry.second = *parsed;
  }
  // A folder is replaced as a whole, so it must be one that holds a saved model and nothing that is still needed.
  bool same = false;
  if (!sys::fs::equivalent(path, weightsFolder, same) && same)
    return makeError("--save=" + path + " would replace the folder that the weights come from; choose another");
  if (Error error = folder->refuseForeignFiles())
    return std::move(error);
  for (const std::string &source : folder->filesToCopy())
    if (!sys::fs::exists(source))
      return makeError("cannot save: " + source +
                       " is missing, which belongs to the model; restore it or give --weights DIR");
  SmallString<256> temporary(sys::path::parent_path(path));
  sys::path::append(temporary, "." + sys::path::filename(path) + ".writing");
  auto taken = [&] {
    return makeError("another run is going to save to " + path + "; choose another folder, or wait for its end");
  };
  if (int previous = ::open(temporary.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); previous >= 0) {
    bool isFree = lockForThisProcess(previous);
    if (isFree)
      sys::fs::remove_directories(temporary); // of a run that was killed
    ::close(previous);
    if (!isFree)
      return taken();
  }
  if (std::error_code error = sys::fs::create_directories(temporary, true, sys::fs::perms::all_all))
    return makeError("cannot write beside " + path + ": " + temporary + ": " + error.message());
  folder->lock = ::open(temporary.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder->lock < 0 || !lockForThisProcess(folder->lock))
    return taken();
  folder->temporary = std::string(temporary);
  return folder;
}

/// Everything in the folder that is to be replaced must be something that a save writes.
Error SaveFolder::refuseForeignFiles() const {
  if (!sys::fs::exists(target))
    return Error::success();
  if (!sys::fs::is_directory(target))
    return makeError("--save=" + target + " is not a folder; choose another name");
  StringSet<> ours = {"model.safetensors"};
  for (const std::string &file : filesToCopy())
    ours.insert(sys::path::filename(file));
  std::error_code code;
  for (sys::fs::directory_iterator it(target, code), end; !code && it != end; it.increment(code))
    if (!ours.contains(sys::path::filename(it->path())))
      return makeError("--save=" + target + " holds '" + sys::path::filename(it->path()) +
                       "', which is no part of this saved model and would be lost; choose another folder");
  if (code)
    return makeError("--save=" + target + ": " + code.message());
  return Error::success();
}

std::vector<std::string> SaveFolder::filesToCopy() const {
  std::vector<std::string> paths;
  if (const json::Array *files = manifest.model.getArray("files"))
    for (const json::Value &file : *files) {
      SmallString<256> path(weightsFolder);
      sys::path::append(path, file.getAsString().value_or(""));
      paths.push_back(std::string(path));
    }
  return paths;
}

Error SaveFolder::copyFiles() {
  for (const std::string &source : filesToCopy()) {
    SmallString<256> destination(temporary);
    sys::path::append(destination, sys::path::filename(source));
    if (std::error_code code = sys::fs::copy_file(source, destination))
      return makeError("cannot copy " + source + " to " + destination + ": " + code.message());
  }
  return Error::success();
}

Error SaveFolder::replaceTarget() {
  bool replaces = sys::fs::exists(target);
  unsigned flags = replaces ? RENAME_EXCHANGE : 0;
  if (renameat2(AT_FDCWD, temporary.c_str(), AT_FDCWD, target.c_str(), flags) != 0)
    return makeError("cannot put " + temporary + " in the place of " + target + ": " + strerror(errno) +
                     "; the saved model is in the former");
  done = true;
  if (replaces)
    sys::fs::remove_directories(temporary); // now the previous folder
  return Error::success();
}

Error SaveFolder::write(Job &job) {
  SmallString<256> path(temporary);
  sys::path::append(path, "model.safetensors");
  std::vector<NamedTensor> tensors;
  for (auto [index, dtype] : dtypes)
    tensors.push_back({index, dtype, manifest.tensors[index].modelName()});
  Expected<std::vector<FileSlice>> slices = createStoreFile(manifest, path, tensors);
  if (!slices)
    return slices.takeError();
  if (Error error = job.save(*slices))
    return error;
  if (Error error = copyFiles())
    return error;
  return replaceTarget();
}
