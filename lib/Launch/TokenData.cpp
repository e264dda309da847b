//===- TokenData.cpp - Token files and what is beside them ----------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "nd/Launch/TokenData.h"
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
  format.tokens = static_cast<int64_t>(status.getSize()) / format.tokenBytes;
  return format;
}

std::string nd::launch::describeRepeats(const Manifest &manifest, StringRef path, int64_t tokens) {
  auto ids = find_if(manifest.tensors, [](const TensorInfo &tensor) {
    return tensor.kind == "input" && (tensor.name == "input_ids" || tensor.name == "labels");
  });
  if (ids == manifest.tensors.end() || ids->globalShape.size() < 2)
    return "";
  int64_t sequence = ids->globalShape.back(), perStep = 1; // [batch, sequence], or with microbatches in front
  for (int64_t extent : ArrayRef<int64_t>(ids->globalShape).drop_back())
    perStep *= extent;
  int64_t samples = (tokens - 1) / sequence;
  if (samples < 1 || samples >= perStep)
    return "";
  return formatv(
      "{0} has {1} {2} of {3} tokens, but a step takes {4}: samples repeat within every step; give more data, "
      "or build the program for a smaller batch",
      path, samples, samples == 1 ? "sample" : "samples", sequence, perStep);
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
