//===- Sidecar.cpp - model.nd.json: what ONNX cannot say ------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Sidecar.h"

#include "mlir/IR/Builders.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

using namespace mlir;
using namespace nd::onnx;
namespace json = llvm::json;

namespace {

/// Reads typed fields and remembers the first complaint, with the path of the field.
class Reader {
public:
  explicit Reader(Sidecar &sidecar) : sidecar(sidecar) {}

  std::string complaint;

  bool complain(const Twine &field, const Twine &expected) {
    if (complaint.empty())
      complaint = ("'" + field + "' is not " + expected).str();
    return false;
  }

  bool readAll(const json::Object &root) {
    if (root.getString("format") != StringRef("nd.sidecar"))
      return complain("format", "\"nd.sidecar\"");
    if (root.getInteger("version") != 1)
      return complain("version", "1, the version that this nd-import reads");
    return string(root, "task", sidecar.task) && optionalInt(root, "ignore_index", sidecar.ignoreIndex) &&
           optionalInt(root, "vocab_size", sidecar.vocabSize) &&
           optionalInt(root, "max_positions", sidecar.maxPositions) && weightsDir(root) &&
           strings(root, "blocks", "", sidecar.blocks) && strings(root, "files", "", sidecar.files) && symbols(root) &&
           inputs(root) && outputs(root) && parameters(root);
  }

private:
  static const json::Value *present(const json::Object &object, StringRef key) {
    const json::Value *value = object.get(key);
    return value && value->kind() != json::Value::Null ? value : nullptr;
  }

  bool string(const json::Object &object, StringRef key, std::string &out, const Twine &where = "") {
    if (const json::Value *value = present(object, key)) {
      if (!value->getAsString())
        return complain(where + key, "a string");
      out = value->getAsString()->str();
    }
    return true;
  }

  bool optionalInt(const json::Object &object, StringRef key, std::optional<int64_t> &out, const Twine &where = "") {
    if (const json::Value *value = present(object, key)) {
      out = value->getAsInteger();
      if (!out)
        return complain(where + key, "an integer or null");
    }
    return true;
  }

  bool strings(const json::Object &object, StringRef key, const Twine &where, SmallVectorImpl<std::string> &out) {
    const json::Value *value = present(object, key);
    if (!value)
      return true;
    const json::Array *array = value->getAsArray();
    if (!array)
      return complain(where + key, "a list of strings");
    for (const json::Value &element : *array) {
      if (!element.getAsString())
        return complain(where + key, "a list of strings");
      out.push_back(element.getAsString()->str());
    }
    return true;
  }

  bool weightsDir(const json::Object &root) {
    std::string folder;
    if (!string(root, "weights_dir", folder))
      return false;
    if (!folder.empty())
      sidecar.weightsDir = folder;
    return true;
  }

  /// The object under `key`, an empty one when absent.
  const json::Object *object(const json::Object &root, StringRef key) {
    static const json::Object none;
    const json::Value *value = present(root, key);
    if (!value)
      return &none;
    if (!value->getAsObject())
      complain(key, "an object");
    return value->getAsObject();
  }

  /// Members in the order of their names: JSON objects have none, and the order must not depend on a hash.
  template <typename Visit> bool eachMember(const json::Object &root, StringRef key, Visit visit) {
    const json::Object *members = object(root, key);
    if (!members)
      return false;
    SmallVector<StringRef> names;
    for (const auto &member : *members)
      names.push_back(member.first);
    llvm::sort(names);
    for (StringRef name : names) {
      const json::Object *member = members->getObject(name);
      if (!member)
        return complain(key + "." + name, "an object");
      if (!visit(name, *member))
        return false;
    }
    return true;
  }

  bool symbols(const json::Object &root) {
    return eachMember(root, "symbols", [&](StringRef name, const json::Object &bounds) {
      std::optional<int64_t> low = 1, high = std::numeric_limits<int64_t>::max();
      std::string where = ("symbols." + name + ".").str();
      if (!optionalInt(bounds, "min", low, where) || !optionalInt(bounds, "max", high, where))
        return false;
      sidecar.symbols[name] = {*low, *high};
      return true;
    });
  }

  bool inputs(const json::Object &root) {
    return eachMember(root, "inputs", [&](StringRef name, const json::Object &input) {
      SmallVector<int64_t> shape;
      const json::Array *sizes = input.getArray("shape");
      if (!sizes)
        return complain("inputs." + name + ".shape", "a list of sizes and symbols");
      for (const json::Value &size : *sizes) {
        if (!size.getAsInteger() && !size.getAsString())
          return complain("inputs." + name + ".shape", "a list of sizes and symbols");
        shape.push_back(size.getAsInteger().value_or(-1));
      }
      sidecar.inputs[name.str()] = shape;
      return true;
    });
  }

  bool outputs(const json::Object &root) {
    return eachMember(root, "outputs", [&](StringRef name, const json::Object &output) {
      std::string role;
      if (!string(output, "role", role, "outputs." + name + "."))
        return false;
      if (!llvm::is_contained({"logits", "loss_sum", "loss_count", "output"}, StringRef(role)))
        return complain("outputs." + name + ".role", "logits, loss_sum, loss_count or output");
      sidecar.outputRoles[name.str()] = role;
      return true;
    });
  }

  bool parameters(const json::Object &root) {
    return eachMember(root, "parameters", [&](StringRef name, const json::Object &object) {
      std::string where = ("parameters." + name + ".").str();
      Sidecar::Parameter parameter;
      const json::Array *shape = object.getArray("shape");
      if (!shape)
        return complain(where + "shape", "a list of sizes");
      for (const json::Value &size : *shape) {
        if (!size.getAsInteger() || *size.getAsInteger() < 0)
          return complain(where + "shape", "a list of sizes");
        parameter.shape.push_back(*size.getAsInteger());
      }
      std::optional<int64_t> rank = parameter.shape.size();
      if (!string(object, "dtype", parameter.dtype, where) ||
          !string(object, "stored_dtype", parameter.storedDtype, where) ||
          !string(object, "file", parameter.file, where) || !string(object, "key", parameter.key, where) ||
          !optionalInt(object, "rank", rank, where) ||
          !optionalInt(object, "padding_idx", parameter.paddingIdx, where) ||
          !strings(object, "aliases", where, parameter.aliases))
        return false;
      parameter.rank = *rank;
      if (parameter.file.empty() != parameter.key.empty())
        return complain(where + "file", "given together with its key");
      if (llvm::sys::path::is_absolute(parameter.file) || StringRef(parameter.file).contains(".."))
        return complain(where + "file", "relative to the weights folder and inside it");
      if (const json::Value *trainable = present(object, "trainable")) {
        if (!trainable->getAsBoolean())
          return complain(where + "trainable", "true or false");
        parameter.trainable = *trainable->getAsBoolean();
      }
      sidecar.parameters[name.str()] = std::move(parameter);
      return true;
    });
  }

  Sidecar &sidecar;
};

/// The JSON parser recurses, so that its input must not nest without bounds.
constexpr unsigned maxNesting = 64;

/// An upper bound of how deep brackets nest in `text`.
unsigned nesting(StringRef text) {
  unsigned depth = 0, deepest = 0;
  for (char c : text) {
    if (c == '{' || c == '[')
      deepest = std::max(deepest, ++depth);
    else if ((c == '}' || c == ']') && depth > 0)
      --depth;
  }
  return deepest;
}

} // namespace

FailureOr<std::optional<Sidecar>> Sidecar::read(StringRef modelPath, MLIRContext *context) {
  SmallString<128> path(modelPath);
  llvm::sys::path::replace_extension(path, ".nd.json");
  if (!llvm::sys::fs::exists(path))
    return std::optional<Sidecar>();
  Location loc = NameLoc::get(StringAttr::get(context, path));
  auto buffer = llvm::MemoryBuffer::getFile(path);
  if (!buffer)
    return emitError(loc) << "cannot read the sidecar: " << buffer.getError().message();
  if (nesting((*buffer)->getBuffer()) > maxNesting)
    return emitError(loc) << "the sidecar is not valid: it nests deeper than " << maxNesting
                          << " levels; export the model again";
  auto parsed = json::parse((*buffer)->getBuffer());
  if (!parsed)
    return emitError(loc) << "the sidecar is not JSON: " << llvm::toString(parsed.takeError())
                          << "; export the model again";
  const json::Object *root = parsed->getAsObject();
  Sidecar sidecar;
  sidecar.path = path.str().str();
  Reader reader(sidecar);
  if (!root || !reader.readAll(*root))
    return emitError(loc) << "the sidecar is not valid: " << (root ? reader.complaint : "it is not an object")
                          << "; export the model again";
  return std::optional<Sidecar>(std::move(sidecar));
}
