//===- TokenData.cpp - Token files and what is beside them ----------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "nd/Launch/TokenData.h"
#include "nd/Launch/Manifest.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;
using namespace nd::launch;

std::string nd::launch::sidecarPath(StringRef tokenFile) {
  SmallString<256> path(tokenFile);
  sys::path::replace_extension(path, "json");
  return std::string(path);
}

Expected<int32_t> nd::launch::parseTokenType(StringRef name) {
  if (name == "uint16")
    return 2;
  if (name == "uint32")
    return 4;
  return makeError("'" + name + "' is no type of tokens; uint16 and uint32 are");
}

Expected<TokenFormat> nd::launch::inspectTokenFile(StringRef path, StringRef dtype) {
  sys::fs::file_status status;
  if (std::error_code code = sys::fs::status(path, status))
    return makeError("cannot open token file " + path + ": " + code.message() + "; make one with nd-data");
  if (!sys::fs::is_regular_file(status))
    return makeError("token file " + path + " is not a file");
  if (status.getSize() == 0)
    return makeError("token file " + path + " is empty; make it again with nd-data");
  TokenFormat format;
  std::string sidecar = sidecarPath(path), stored;
  if (sidecar != path && sys::fs::exists(sidecar)) {
    Expected<json::Object> object = readJsonObject(sidecar);
    if (!object)
      return object.takeError();
    stored = object->getString("dtype").value_or("").str();
    format.vocabulary = object->getInteger("vocab_size").value_or(0);
    if (stored.empty())
      return makeError(sidecar + " does not say the \"dtype\" of the tokens");
  }
  if (!stored.empty() && !dtype.empty() && stored != dtype)
    return makeError("--data-dtype=" + dtype + " contradicts " + sidecar + ", which says " + stored);
  if (stored.empty() && dtype.empty())
    return makeError("nothing says how the tokens of " + path +
                     " are stored: give --data-dtype=uint16 or uint32, or a sidecar " + sidecar);
  Expected<int32_t> bytes = parseTokenType(dtype.empty() ? StringRef(stored) : dtype);
  if (!bytes)
    return bytes.takeError();
  format.tokenBytes = *bytes;
  if (status.getSize() % format.tokenBytes != 0)
    return makeError(path + ": " + Twine(status.getSize()) + " bytes are no whole number of " +
                     Twine(format.tokenBytes * 8) + "-bit tokens: the file is truncated, or its type is another");
  return format;
}

Error nd::launch::writeSidecar(StringRef tokenFile, const TokenFormat &format, int64_t tokens, StringRef tokenizer) {
  std::string path = sidecarPath(tokenFile);
  std::error_code code;
  raw_fd_ostream stream(path, code);
  if (code)
    return makeError("cannot write " + path + ": " + code.message());
  stream << formatv("{{\"dtype\": \"{0}\", \"vocab_size\": {1}, \"tokens\": {2}, \"tokenizer\": {3}}\n",
                    format.tokenBytes == 2 ? "uint16" : "uint32", format.vocabulary, tokens, json::Value(tokenizer));
  stream.close();
  if (stream.has_error()) {
    stream.clear_error();
    return makeError("cannot write " + path + ": " + stream.error().message());
  }
  return Error::success();
}
