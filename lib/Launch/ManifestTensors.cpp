//===- ManifestTensors.cpp - The tensors of a manifest --------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "ManifestTensors.h"
#include "nd/Runtime/Core/Fingerprint.h"
#include <map>

using namespace llvm;
using namespace nd::launch;

namespace {

/// One entry, as JSON says it.
struct Entry {
  std::string dtype;
  std::vector<int64_t> shape, globalShape;
  std::vector<std::vector<std::string>> dimAxes;
  std::optional<std::vector<std::vector<int64_t>>> dimBlocks;
  int64_t offset = 0;
  std::optional<int64_t> bound, ignore, padValue;
  std::vector<int64_t> units;
  int64_t unitsDim = 0, unitSize = 0;
};

/// Fills the ABI's description with what the manifest says; false where it does not fit.
bool describe(const Manifest &manifest, const TensorInfo &tensor, const Entry &entry, nd_tensor_desc &desc) {
  size_t rank = entry.globalShape.size();
  if (rank > ND_MAX_RANK || entry.shape.size() != rank || entry.dimAxes.size() != rank ||
      (entry.dimBlocks && entry.dimBlocks->size() != rank))
    return false;
  desc.kind = tensor.kind.c_str();
  desc.name = tensor.name.c_str();
  desc.dtype = tensor.dtype;
  desc.rank = static_cast<int32_t>(rank);
  for (size_t dim = 0; dim < ND_MAX_RANK; ++dim)
    std::fill_n(desc.dim_axes[dim], ND_MAX_DIM_AXES, static_cast<int8_t>(-1));
  for (size_t dim = 0; dim < rank; ++dim) {
    desc.shape[dim] = entry.shape[dim];
    desc.global_shape[dim] = entry.globalShape[dim];
    const std::vector<std::string> &names = entry.dimAxes[dim];
    size_t numBlocks = entry.dimBlocks ? (*entry.dimBlocks)[dim].size() : 0;
    if (names.size() > ND_MAX_DIM_AXES || (numBlocks != 0 && numBlocks != names.size()))
      return false;
    for (auto [position, name] : enumerate(names)) {
      auto axis = find(manifest.axes, name);
      if (axis == manifest.axes.end())
        return false;
      desc.dim_axes[dim][position] = static_cast<int8_t>(axis - manifest.axes.begin());
      if (numBlocks)
        desc.dim_blocks[dim][position] = (*entry.dimBlocks)[dim][position];
    }
  }
  desc.units_dim = static_cast<int32_t>(entry.unitsDim);
  desc.num_units = static_cast<int32_t>(entry.units.size());
  desc.unit_size = entry.unitSize;
  desc.units = entry.units.data();
  desc.pad_value = entry.padValue.value_or(0);
  desc.offset = entry.offset;
  desc.bound = entry.bound.value_or(0);
  desc.ignore = entry.ignore.value_or(0);
  return true;
}

Error readStorage(StringRef path, const json::Object &object, TensorInfo &tensor) {
  Storage &storage = tensor.storage.emplace();
  storage.file = object.getString("file").value_or("").str();
  storage.key = object.getString("key").value_or("").str();
  storage.offset = object.getInteger("offset").value_or(0);
  storage.length = object.getInteger("length").value_or(0);
  if (storage.file.empty())
    return makeError(path + ": the storage of " + tensor.describe() + " names no file");
  return Error::success();
}

Error readPart(StringRef path, const json::Object &object, TensorInfo &tensor) {
  PartOf &part = tensor.part;
  part.name = object.getString("name").value_or("").str();
  part.dim = object.getInteger("dim").value_or(-1);
  part.offset = object.getInteger("offset").value_or(-1);
  part.size = object.getInteger("size").value_or(0);
  if (part.name.empty() || part.dim < 0 || part.dim >= static_cast<int64_t>(tensor.globalShape.size()) ||
      part.offset < 0 || part.offset > part.size - tensor.globalShape[part.dim])
    return makeError(path + ": the 'part' of " + tensor.describe() + " does not lie in the tensor that it names");
  return Error::success();
}

} // namespace

Error nd::launch::readTensor(StringRef path, Manifest &manifest, const json::Value &value, size_t index) {
  json::Path::Root root("tensors[" + std::to_string(index) + "]");
  json::ObjectMapper mapper(value, root);
  TensorInfo &tensor = manifest.tensors.emplace_back();
  Entry entry;
  if (!mapper || !mapper.map("kind", tensor.kind) || !mapper.map("name", tensor.name) ||
      !mapper.map("dtype", entry.dtype) || !mapper.map("shape", entry.shape) ||
      !mapper.map("global_shape", entry.globalShape) || !mapper.map("dim_axes", entry.dimAxes) ||
      !mapper.mapOptional("dim_blocks", entry.dimBlocks) || !mapper.map("offset", entry.offset) ||
      !mapper.mapOptional("bound", entry.bound) || !mapper.mapOptional("ignore", entry.ignore) ||
      !mapper.mapOptional("pad_value", entry.padValue))
    return makeError(path + ": " + toString(root.getError()) + "; recompile the program with nd-compile");
  if (const json::Value *units = value.getAsObject()->get("units")) {
    json::ObjectMapper unitsMapper(*units, root);
    if (!unitsMapper || !unitsMapper.map("dim", entry.unitsDim) || !unitsMapper.map("size", entry.unitSize) ||
        !unitsMapper.map("order", entry.units))
      return makeError(path + ": " + toString(root.getError()) + "; recompile the program with nd-compile");
  }
  Expected<int32_t> parsed = parseDtype(entry.dtype);
  if (!parsed)
    return makeError(path + ": " + tensor.describe() + ": " + toString(parsed.takeError()));
  tensor.dtype = *parsed;
  for (int64_t size : entry.globalShape)
    if (size < 0)
      return makeError(path + ": " + tensor.describe() + " has a negative size");
  tensor.globalShape.assign(entry.globalShape.begin(), entry.globalShape.end());
  nd_tensor_desc desc{};
  if (!describe(manifest, tensor, entry, desc))
    return makeError(path + ": shape, global_shape, dim_axes and dim_blocks of " + tensor.describe() +
                     " do not fit each other and the mesh; recompile the program with nd-compile");
  tensor.fingerprint = rt::fingerprint(desc);
  if (const json::Object *part = value.getAsObject()->getObject("part"))
    if (Error error = readPart(path, *part, tensor))
      return error;
  const json::Object *storage = value.getAsObject()->getObject("storage");
  return storage ? readStorage(path, *storage, tensor) : Error::success();
}

Error nd::launch::checkParts(StringRef path, const Manifest &manifest) {
  std::map<std::pair<std::string, std::string>, std::vector<const TensorInfo *>> groups;
  for (const TensorInfo &tensor : manifest.tensors)
    if (tensor.part.size)
      groups[{tensor.kind, tensor.part.name}].push_back(&tensor);
  for (auto &[key, parts] : groups) {
    llvm::sort(parts, [](const TensorInfo *a, const TensorInfo *b) { return a->part.offset < b->part.offset; });
    const TensorInfo &first = *parts.front();
    int64_t end = 0;
    bool fits = true;
    for (const TensorInfo *tensor : parts) {
      fits &= tensor->part.offset == end && tensor->part.dim == first.part.dim && tensor->dtype == first.dtype &&
              tensor->modelShape() == first.modelShape();
      end = tensor->part.offset + (fits ? tensor->globalShape[first.part.dim] : 0);
    }
    if (!fits || end != first.part.size)
      return makeError(path + ": the parts of " + key.first + " '" + key.second +
                       "' are not the whole of it; recompile "
                       "the program");
  }
  return Error::success();
}
