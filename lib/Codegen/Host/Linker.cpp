//===- Linker.cpp - Links rank executables ---------------------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Linker.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"

using namespace llvm;
using namespace nd;

namespace {

Error failure(const Twine &message) { return createStringError(message.str()); }

/// A compiler driver knows where the C++ library and the startup files are.
Expected<std::string> findDriver() {
  for (StringRef name : {"c++", "g++", "clang++", "clang++-22"})
    if (ErrorOr<std::string> path = sys::findProgramByName(name))
      return *path;
  return failure("cannot link executables: none of c++, g++, clang++ is on the PATH; install g++");
}

} // namespace

Error nd::linkExecutable(ArrayRef<std::string> objects, StringRef runtimeFolder, StringRef output) {
  Expected<std::string> driver = findDriver();
  if (!driver)
    return driver.takeError();
  SmallVector<std::string> arguments{*driver, "-pie", "-o", output.str()};
  append_range(arguments, objects);
  arguments.push_back("-Wl,--gc-sections");
  arguments.push_back("-Wl,--start-group");
  for (StringRef library : {"libNDRuntimeCore.a", "libNDRuntimeHost.a"}) {
    SmallString<128> path(runtimeFolder);
    sys::path::append(path, library);
    if (!sys::fs::exists(path))
      return failure("the runtime library " + Twine(path) +
                     " does not exist; build NDRuntimeHost, or name its folder by --runtime-dir");
    arguments.push_back(path.str().str());
  }
  for (StringRef flag : {"-Wl,--end-group", "-ldnnl", "-lgomp", "-lpthread", "-lm"})
    arguments.push_back(flag.str());

  SmallString<128> log;
  if (std::error_code error = sys::fs::createTemporaryFile("nd-link", "txt", log))
    return failure("cannot make a temporary file: " + Twine(error.message()));
  std::optional<StringRef> redirects[] = {std::nullopt, log.str(), log.str()};
  SmallVector<StringRef> views(arguments.begin(), arguments.end());
  std::string message;
  int code =
      sys::ExecuteAndWait(*driver, views, std::nullopt, redirects, /*SecondsToWait=*/0, /*MemoryLimit=*/0, &message);
  if (code != 0)
    if (ErrorOr<std::unique_ptr<MemoryBuffer>> text = MemoryBuffer::getFile(log))
      message += (*text)->getBuffer();
  (void)sys::fs::remove(log);
  return code == 0 ? Error::success() : failure("linking " + output + " failed (" + *driver + "):\n" + message);
}
