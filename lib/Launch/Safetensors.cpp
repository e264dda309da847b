//===- Safetensors.cpp - Headers of safetensors files ---------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "nd/Launch/Safetensors.h"
#include "nd/Runtime/Core/Dtype.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/raw_ostream.h"
#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace llvm;
using namespace nd::launch;

namespace {

/// Names of the format for the types that nd has.
constexpr std::pair<const char *, int32_t> typeNames[] = {{"F32", ND_F32}, {"BF16", ND_BF16}, {"F16", ND_F16},
                                                          {"F64", ND_F64}, {"I64", ND_I64},   {"I32", ND_I32},
                                                          {"I16", ND_I16}, {"I8", ND_I8},     {"BOOL", ND_I1}};

/// As the format's own reader limits it.
constexpr uint64_t maxHeader = 100'000'000;

class Descriptor {
public:
  explicit Descriptor(int fd) : fd(fd) {}
  ~Descriptor() {
    if (fd >= 0)
      close(fd);
  }
  Descriptor(const Descriptor &) = delete;
  Descriptor &operator=(const Descriptor &) = delete;
  int get() const { return fd; }

private:
  int fd;
};

Error damaged(StringRef path, const Twine &what) {
  return makeError(path + " is no valid safetensors file: " + what + "; download or save it again");
}

Error parseEntry(StringRef path, StringRef name, const json::Value &value, int64_t dataStart, int64_t dataBytes,
                 StoredTensor &tensor) {
  const json::Object *entry = value.getAsObject();
  const json::Array *shape = entry ? entry->getArray("shape") : nullptr;
  const json::Array *range = entry ? entry->getArray("data_offsets") : nullptr;
  std::optional<StringRef> type = entry ? entry->getString("dtype") : std::nullopt;
  if (!shape || !range || !type || range->size() != 2)
    return damaged(path, "tensor '" + name + "' lacks dtype, shape or data_offsets");
  const auto *known = find_if(typeNames, [&](auto &pair) { return *type == pair.first; });
  if (known == std::end(typeNames))
    return makeError(path + ": tensor '" + name + "' has the type " + *type + ", which nd does not read");
  tensor.dtype = known->second;
  int64_t bytes = nd::rt::dtypeBytes(tensor.dtype);
  for (const json::Value &size : *shape) {
    std::optional<int64_t> dim = size.getAsInteger();
    if (!dim || *dim < 0 || __builtin_mul_overflow(bytes, *dim, &bytes))
      return damaged(path, "tensor '" + name + "' has an impossible shape");
    tensor.shape.push_back(*dim);
  }
  std::optional<int64_t> begin = (*range)[0].getAsInteger(), end = (*range)[1].getAsInteger();
  if (!begin || !end || *begin < 0 || *end < *begin || *end > dataBytes)
    return damaged(path, "the bytes of tensor '" + name + "' lie outside the file (is it truncated?)");
  if (*end - *begin != bytes)
    return damaged(path, "tensor '" + name + "' of shape " + shapeText(tensor.shape) + " and type " + *type + " has " +
                             Twine(*end - *begin) + " bytes");
  tensor.offset = dataStart + *begin;
  tensor.bytes = bytes;
  return Error::success();
}

Error checkOverlaps(const SafetensorsFile &file) {
  std::vector<std::pair<int64_t, StringRef>> starts;
  for (const auto &entry : file.tensors)
    if (entry.second.bytes > 0)
      starts.emplace_back(entry.second.offset, entry.first());
  llvm::sort(starts);
  for (size_t i = 1; i < starts.size(); ++i) {
    const StoredTensor &before = file.tensors.find(starts[i - 1].second)->second;
    if (before.offset + before.bytes > starts[i].first)
      return damaged(file.path, "tensors '" + starts[i - 1].second + "' and '" + starts[i].second + "' overlap");
  }
  return Error::success();
}

Error writeAll(int fd, StringRef path, StringRef data) {
  while (!data.empty()) {
    ssize_t written = write(fd, data.data(), data.size());
    if (written < 0 && errno == EINTR)
      continue;
    if (written <= 0)
      return makeError("cannot write " + path + ": " + strerror(errno));
    data = data.drop_front(written);
  }
  return Error::success();
}

} // namespace

std::string nd::launch::shapeText(ArrayRef<int64_t> shape) {
  std::string text;
  raw_string_ostream stream(text);
  stream << '[';
  interleaveComma(shape, stream);
  stream << ']';
  return text;
}

Expected<SafetensorsFile> nd::launch::readSafetensors(StringRef path) {
  SafetensorsFile file;
  file.path = path.str();
  Descriptor descriptor(open(file.path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat info;
  if (descriptor.get() < 0 || fstat(descriptor.get(), &info) != 0)
    return makeError("cannot open " + path + ": " + strerror(errno));
  if (!S_ISREG(info.st_mode))
    return makeError(path + " is not a file");
  char sizeBytes[8];
  if (pread(descriptor.get(), sizeBytes, 8, 0) != 8)
    return damaged(path, "it has fewer than 8 bytes");
  uint64_t headerBytes = support::endian::read64le(sizeBytes);
  if (headerBytes > maxHeader || static_cast<int64_t>(headerBytes) + 8 > info.st_size)
    return damaged(path, "its header of " + Twine(headerBytes) + " bytes does not fit the file");
  std::string header(headerBytes, '\0');
  if (pread(descriptor.get(), header.data(), headerBytes, 8) != static_cast<ssize_t>(headerBytes))
    return damaged(path, "its header cannot be read");
  Expected<json::Value> value = parseJson(header);
  if (!value)
    return damaged(path, "its header is not JSON (" + toString(value.takeError()) + ")");
  const json::Object *object = value->getAsObject();
  if (!object)
    return damaged(path, "its header is not a JSON object");
  int64_t dataStart = 8 + headerBytes;
  for (const auto &[key, entry] : *object) {
    StringRef name = key;
    if (name == "__metadata__")
      continue;
    if (Error error = parseEntry(path, name, entry, dataStart, info.st_size - dataStart, file.tensors[name]))
      return std::move(error);
  }
  if (Error error = checkOverlaps(file))
    return std::move(error);
  return file;
}

Error nd::launch::createSafetensors(StringRef path, std::vector<TensorToStore> &tensors) {
  json::Object header;
  header["__metadata__"] = json::Object{{"format", "pt"}};
  int64_t end = 0;
  // Widest types first, so that every tensor is aligned although the format allows no holes.
  llvm::sort(tensors, [](const TensorToStore &a, const TensorToStore &b) {
    return std::make_pair(-nd::rt::dtypeBytes(a.dtype), StringRef(a.name)) <
           std::make_pair(-nd::rt::dtypeBytes(b.dtype), StringRef(b.name));
  });
  for (TensorToStore &tensor : tensors) {
    int64_t bytes = nd::rt::dtypeBytes(tensor.dtype);
    for (int64_t size : tensor.shape)
      bytes *= size;
    const auto *type = find_if(typeNames, [&](auto &pair) { return tensor.dtype == pair.second; });
    header[tensor.name] = json::Object{
        {"dtype", type->first}, {"shape", json::Array(tensor.shape)}, {"data_offsets", json::Array{end, end + bytes}}};
    tensor.offset = end;
    end += bytes;
  }
  std::string text;
  raw_string_ostream(text) << json::Value(std::move(header));
  text.resize((text.size() + 7) / 8 * 8, ' '); // data starts aligned, as the format wants
  int64_t dataStart = 8 + static_cast<int64_t>(text.size());
  for (TensorToStore &tensor : tensors)
    tensor.offset += dataStart;
  std::string file = path.str();
  Descriptor descriptor(open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (descriptor.get() < 0)
    return makeError("cannot create " + path + ": " + strerror(errno));
  char sizeBytes[8];
  support::endian::write64le(sizeBytes, text.size());
  if (Error error = writeAll(descriptor.get(), path, StringRef(sizeBytes, 8)))
    return error;
  if (Error error = writeAll(descriptor.get(), path, text))
    return error;
  if (int code = end > 0 ? posix_fallocate(descriptor.get(), dataStart, end) : 0)
    return makeError("cannot make room for " + Twine(end) + " bytes in " + path + ": " + strerror(code));
  return Error::success();
}
