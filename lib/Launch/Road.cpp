//===- Road.cpp - From a model to a program, cached -----------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "nd/Launch/Road.h"
#include "JobProcess.h"
#include "nd/Launch/Manifest.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/SHA256.h"
#include "llvm/Support/raw_ostream.h"
#include <unistd.h>

using namespace llvm;
using namespace nd::launch;

namespace {

constexpr const char *tools[] = {"nd-import", "nd-opt", "nd-compile"};

std::string pathOf(StringRef folder, const Twine &file) {
  SmallString<256> path(folder);
  sys::path::append(path, file);
  return std::string(path);
}

class Road {
public:
  explicit Road(const RoadRequest &request) : request(request) {}
  Expected<std::string> run();

private:
  Error hashFile(StringRef path);
  void hashText(StringRef text) {
    hash.update(text);
    hash.update(StringRef("\0", 1)); // where one field ends and the next begins
  }
  Expected<std::string> key();
  Error runTool(StringRef tool, std::vector<std::string> arguments);
  Error compile(StringRef folder);

  const RoadRequest &request;
  SHA256 hash;
};

Error Road::hashFile(StringRef path) {
  ErrorOr<std::unique_ptr<MemoryBuffer>> buffer = MemoryBuffer::getFile(path);
  if (!buffer)
    return makeError("cannot read " + path + ": " + buffer.getError().message());
  hashText((*buffer)->getBuffer());
  return Error::success();
}

/// Names the program by everything that it depends on. The model's place is part of it, because weights are found
/// beside it.
Expected<std::string> Road::key() {
  SmallString<256> model;
  if (std::error_code code = sys::fs::real_path(request.model, model))
    return makeError("cannot read " + request.model + ": " + code.message());
  hashText(model);
  if (Error error = hashFile(model))
    return std::move(error);
  SmallString<256> sidecar(model);
  sys::path::replace_extension(sidecar, "nd.json");
  if (sys::fs::exists(sidecar))
    if (Error error = hashFile(sidecar))
      return std::move(error);
  hashText(formatv("{0} {1} {2}", request.batch, request.sequence, request.target).str());
  for (const std::string &argument : request.stepArguments)
    hashText(argument);
  for (const char *tool : tools) {
    std::string path = pathOf(request.toolsFolder, tool);
    sys::fs::file_status status;
    if (sys::fs::status(path, status))
      return makeError("nd-run needs " + Twine(tool) + " beside itself, in " + request.toolsFolder +
                       "; build or install it");
    hashText(formatv("{0} {1}", status.getSize(), status.getLastModificationTime().time_since_epoch().count()).str());
  }
  return toHex(hash.final(), /*LowerCase=*/true).substr(0, 32);
}

Error Road::runTool(StringRef tool, std::vector<std::string> arguments) {
  std::string path = pathOf(request.toolsFolder, tool), problem;
  arguments.insert(arguments.begin(), path);
  std::vector<StringRef> references(arguments.begin(), arguments.end());
  if (sys::ExecuteAndWait(path, references, std::nullopt, {}, 0, 0, &problem) == 0)
    return Error::success();
  return makeError(tool + " failed" + (problem.empty() ? "" : ": " + problem) + "; the command was\n  " +
                   llvm::join(arguments.begin(), arguments.end(), StringRef(" ")));
}

Error Road::compile(StringRef folder) {
  std::string model = pathOf(folder, "model.mlir"), step = pathOf(folder, "step.mlir");
  if (Error error = runTool("nd-import", {request.model, "--batch=" + std::to_string(request.batch),
                                          "--seq=" + std::to_string(request.sequence), "-o", model}))
    return error;
  std::vector<std::string> arguments = {"--train"};
  arguments.insert(arguments.end(), request.stepArguments.begin(), request.stepArguments.end());
  arguments.insert(arguments.end(), {model, "-o", step});
  if (Error error = runTool("nd-opt", std::move(arguments)))
    return error;
  return runTool("nd-compile", {step, "--target=" + request.target, "-o", pathOf(folder, "program")});
}

Expected<std::string> Road::run() {
  if (request.batch < 1 || request.sequence < 1)
    return makeError("give --batch=B and --seq=S, the number of sequences and their length, to run " + request.model);
  Expected<std::string> name = key();
  if (!name)
    return name.takeError();
  std::string programs = pathOf(cacheFolder(), "programs"), folder = pathOf(programs, *name);
  if (sys::fs::exists(pathOf(folder, "program/manifest.json")))
    return pathOf(folder, "program");
  double start = monotonicMilliseconds();
  std::string temporary = pathOf(programs, "." + *name + "." + std::to_string(getpid()));
  if (std::error_code code = sys::fs::create_directories(temporary, true, sys::fs::perms::all_all))
    return makeError("cannot create " + temporary + ": " + code.message() + "; ND_CACHE names another folder");
  if (Error error = compile(temporary)) {
    sys::fs::remove_directories(temporary);
    return std::move(error);
  }
  // Another run may have been as fast: its program is the same.
  if (sys::fs::rename(temporary, folder))
    sys::fs::remove_directories(temporary);
  if (!sys::fs::exists(pathOf(folder, "program/manifest.json")))
    return makeError("cannot put the compiled program into " + folder);
  errs() << formatv("compiled {0} in {1:f1} s\n", request.model, (monotonicMilliseconds() - start) / 1e3);
  return pathOf(folder, "program");
}

} // namespace

std::string nd::launch::cacheFolder() {
  if (const char *folder = getenv("ND_CACHE"); folder && *folder)
    return folder;
  SmallString<256> path;
  if (!sys::path::cache_directory(path))
    path = "/tmp";
  sys::path::append(path, "nd");
  return std::string(path);
}

Expected<std::string> nd::launch::buildProgram(const RoadRequest &request) { return Road(request).run(); }
