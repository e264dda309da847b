//===- Manifest.cpp - A program folder ------------------------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "nd/Launch/Manifest.h"
#include "ManifestTensors.h"
#include "nd/Runtime/Core/Fingerprint.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

using namespace llvm;
using namespace nd::launch;

uint64_t Manifest::meshFingerprint() const {
  SmallVector<int32_t> sizes(axisSizes.begin(), axisSizes.end());
  SmallVector<const char *> names;
  for (const std::string &axis : axes)
    names.push_back(axis.c_str());
  return rt::meshFingerprint(static_cast<int32_t>(sizes.size()), sizes.data(), names.data());
}

SmallVector<int64_t, 4> TensorInfo::modelShape() const {
  SmallVector<int64_t, 4> shape = globalShape;
  if (part.size)
    shape[part.dim] = part.size;
  return shape;
}

Error nd::launch::makeError(const Twine &message) {
  return createStringError(std::make_error_code(std::errc::invalid_argument), message);
}

Expected<json::Value> nd::launch::parseJson(StringRef text) {
  constexpr int deepest = 100;
  int depth = 0;
  bool inString = false;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (inString) {
      i += c == '\\';
      inString = c != '"';
    } else if (c == '"') {
      inString = true;
    } else if (c == '[' || c == '{') {
      if (++depth > deepest)
        return makeError("it is nested more than " + Twine(deepest) + " deep");
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return json::parse(text);
}

Expected<json::Object> nd::launch::readJsonObject(StringRef path) {
  ErrorOr<std::unique_ptr<MemoryBuffer>> buffer = MemoryBuffer::getFile(path);
  if (!buffer)
    return makeError("cannot read " + path + ": " + buffer.getError().message());
  Expected<json::Value> value = parseJson((*buffer)->getBuffer());
  if (!value)
    return makeError(path + " is not JSON: " + toString(value.takeError()));
  json::Object *object = value->getAsObject();
  if (!object)
    return makeError(path + " holds no JSON object");
  return std::move(*object);
}

Expected<int32_t> nd::launch::parseDtype(StringRef name) {
  int32_t dtype = StringSwitch<int32_t>(name)
                      .Case("f32", ND_F32)
                      .Case("bf16", ND_BF16)
                      .Case("f16", ND_F16)
                      .Case("f64", ND_F64)
                      .Case("i64", ND_I64)
                      .Case("i32", ND_I32)
                      .Case("i16", ND_I16)
                      .Case("i8", ND_I8)
                      .Case("i1", ND_I1)
                      .Default(-1);
  if (dtype < 0)
    return makeError("unknown type '" + name + "'");
  return dtype;
}

namespace {

/// Reads fields of the manifest; the first problem is kept, with its place.
class Reader {
public:
  explicit Reader(StringRef path) : path(path) {}

  Error fill(Manifest &manifest, json::Object &root);

private:
  template <typename T> bool read(const json::Value &value, T &out, json::Path place) {
    return json::fromJSON(value, out, place);
  }
  Error report(json::Path::Root &root) {
    return makeError(path + ": " + toString(root.getError()) + "; recompile the program with nd-compile");
  }
  Error checkRanks(const Manifest &manifest);

  std::string path;
};

} // namespace

Error Reader::checkRanks(const Manifest &manifest) {
  int64_t product = 1;
  for (int64_t size : manifest.axisSizes)
    product *= size;
  if (manifest.axes.size() != manifest.axisSizes.size() || manifest.axes.size() > ND_MAX_AXES ||
      product != manifest.ranks || manifest.ranks < 1 || manifest.ranks > 4096)
    return makeError(path + ": the mesh does not have the " + Twine(manifest.ranks) + " ranks of 'ranks'");
  if (manifest.rankProgram.size() != static_cast<size_t>(manifest.ranks))
    return makeError(path + ": 'rank_program' must name a program for each of the " + Twine(manifest.ranks) + " ranks");
  for (int64_t program : manifest.rankProgram)
    if (program < 0 || program >= static_cast<int64_t>(manifest.programs.size()))
      return makeError(path + ": 'rank_program' names program " + Twine(program) + ", which does not exist");
  return Error::success();
}

Error Reader::fill(Manifest &manifest, json::Object &object) {
  std::optional<StringRef> format = object.getString("format");
  if (!format || *format != "nd.program")
    return makeError(path + " is not the manifest of a compiled program (\"format\": \"nd.program\")");
  if (object.getInteger("version") != 1)
    return makeError(path + " has another version than 1, which this nd-run reads; recompile the program");
  json::Value value(std::move(object));
  json::Path::Root root("manifest");
  json::ObjectMapper mapper(value, root);
  json::Object &fields = *value.getAsObject();
  json::Object *mesh = fields.getObject("mesh");
  json::Array *programs = fields.getArray("programs"), *tensors = fields.getArray("tensors");
  if (!mapper || !mapper.map("abi", manifest.abi) || !mapper.map("ranks", manifest.ranks) ||
      !mapper.map("rank_program", manifest.rankProgram) || !mapper.mapOptional("name", manifest.name))
    return report(root);
  if (!mesh || !programs || !tensors)
    return makeError(path + ": 'mesh', 'programs' and 'tensors' must be there; recompile the program with nd-compile");
  json::Path::Root meshRoot("mesh");
  json::ObjectMapper meshMapper(*fields.get("mesh"), meshRoot);
  if (!meshMapper || !meshMapper.map("axes", manifest.axes) || !meshMapper.map("sizes", manifest.axisSizes))
    return report(meshRoot);
  for (const json::Value &program : *programs) {
    const json::Object *entry = program.getAsObject();
    std::optional<StringRef> file = entry ? entry->getString("file") : std::nullopt;
    if (!file || sys::path::is_absolute(*file) || file->contains(".."))
      return makeError(path + ": 'programs' must name files of the folder");
    SmallString<256> full(manifest.folder);
    sys::path::append(full, *file);
    if (!sys::fs::can_execute(full))
      return makeError("the executable " + full + " of the program is missing; recompile it with nd-compile");
    uint64_t bytes = 0;
    std::optional<int64_t> expected = entry->getInteger("bytes");
    if (std::error_code error = sys::fs::file_size(full, bytes))
      return makeError("cannot read " + full + ": " + error.message());
    if (expected && bytes != static_cast<uint64_t>(*expected))
      return makeError("the executable " + full + " has " + Twine(bytes) + " bytes and the manifest says " +
                       Twine(*expected) +
                       ": it was cut, or is not that of this manifest; recompile the program with nd-compile");
    manifest.programs.push_back(std::string(full));
  }
  for (const auto &[index, entry] : enumerate(*tensors))
    if (Error error = readTensor(path, manifest, entry, index))
      return error;
  if (const json::Array *collectives = fields.getArray("collectives"))
    for (const json::Value &entry : *collectives)
      if (const json::Object *info = entry.getAsObject())
        manifest.collectives.push_back(
            {info->getString("kind").value_or("").str(), info->getString("name").value_or("").str(),
             info->getString("location").value_or("").str(), info->getString("group").value_or("").str(),
             info->getBoolean("scalar").value_or(false)});
  if (json::Object *model = fields.getObject("model"))
    manifest.model = std::move(*model);
  if (const json::Object *memory = fields.getObject("memory")) {
    manifest.arenaBytes = memory->getInteger("arena_bytes").value_or(0);
    manifest.threadScratchBytes = memory->getInteger("thread_scratch_bytes").value_or(0);
  }
  if (json::Object *step = fields.getObject("step"))
    manifest.step = std::move(*step);
  if (Error error = checkParts(path, manifest))
    return error;
  return checkRanks(manifest);
}

Expected<Manifest> nd::launch::readManifest(StringRef folder) {
  SmallString<256> path(folder);
  sys::path::append(path, "manifest.json");
  if (!sys::fs::exists(path))
    return makeError(folder + " is no program folder: it has no manifest.json; make one with nd-compile -o " + folder);
  Expected<json::Object> object = readJsonObject(path);
  if (!object)
    return object.takeError();
  Manifest manifest;
  manifest.folder = folder.str();
  if (Error error = Reader(path).fill(manifest, *object))
    return std::move(error);
  return manifest;
}
