//===- Parameters.cpp - Which initializers are parameters -----------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Parameters.h"

#include "mlir/IR/Builders.h"
#include "nd/Dialect/ND/IR/Names.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace nd;
using namespace nd::onnx;

namespace {

/// Float initializers from this size on are parameters when nothing else says so.
constexpr int64_t largeElements = 1024;
/// A buffer of more elements is a frozen argument: it would be too large for IR text.
constexpr int64_t maxInlineElements = 65536;

enum class Role { parameter, frozen, constant };

class Selector {
public:
  Selector(const ModelFile &file, const std::optional<Sidecar> &sidecar, ArrayRef<VersionedNode> nodes)
      : file(file), sidecar(sidecar), builder(file.location().getContext()) {
    readSignature();
    for (const VersionedNode &node : nodes)
      for (auto [position, input] : llvm::enumerate(node.proto.input())) {
        used.insert(input);
        StringRef op = node.proto.op_type();
        if ((op == "MatMul" && position <= 1) || (op == "Gemm" && position >= 1) || (op == "Gather" && position == 0))
          weightLike.insert(input);
      }
  }

  FailureOr<std::vector<Parameter>> run() {
    for (const wire::TensorProto &tensor : file.proto().graph().initializer()) {
      if (!seen.insert(tensor.name()).second)
        return file.error() << "initializer '" << tensor.name() << "' is given twice; export the model again";
      LogicalResult result = sidecar ? addBySidecar(tensor) : addByGuess(tensor);
      if (failed(result))
        return failure();
    }
    if (sidecar && failed(checkAllFound()))
      return failure();
    if (!computed.empty())
      emitWarning(file.location()) << computed.size()
                                   << " initializers were computed by the exporter's optimizer and are taken as "
                                   << "parameters under its names (" << computed.front()
                                   << ", ...); export with optimize=False to keep the model's names";
    for (auto [parameter, attributes] : llvm::zip_equal(parameters, pending))
      parameter.attributes = attributes.getDictionary(builder.getContext());
    return std::move(parameters);
  }

private:
  /// Lines `p_x: PARAMETER target='x'` of torch's graph signature, and kinds stated on values.
  void readSignature() {
    for (const auto &entry : file.proto().graph().metadata_props()) {
      if (entry.key() != "pkg.torch.export.ExportedProgram.graph_signature")
        continue;
      SmallVector<StringRef> lines;
      StringRef(entry.value()).split(lines, '\n');
      for (StringRef line : lines) {
        StringRef rest = line.split(": ").second;
        StringRef kind = rest.split(' ').first;
        StringRef target = rest.split("target='").second.split('\'').first;
        if (!target.empty())
          kinds[target] = kind.str();
      }
    }
    for (const wire::ValueInfoProto &value : file.proto().graph().value_info())
      for (const auto &entry : value.metadata_props())
        if (entry.key() == "pkg.torch.export.graph_signature.InputSpec.kind")
          kinds[value.name()] = entry.value();
  }

  LogicalResult addBySidecar(const wire::TensorProto &tensor) {
    if (byName.empty())
      for (auto &[name, parameter] : sidecar->parameters) {
        byName[name] = &parameter;
        canonical[name] = name;
        for (const std::string &alias : parameter.aliases) {
          byName[alias] = &parameter;
          canonical[alias] = name;
        }
      }
    const Sidecar::Parameter *entry = byName.lookup(tensor.name());
    if (!entry) {
      if (kinds.lookup(tensor.name()) == "PARAMETER")
        return file.error() << "parameter '" << tensor.name() << "' is not in the sidecar '" << sidecar->path
                            << "'; export model and sidecar together";
      return keepLargeBuffer(tensor);
    }
    FailureOr<RankedTensorType> type = file.tensorType(tensor);
    if (failed(type))
      return failure();
    if (type->getShape() != ArrayRef<int64_t>(entry->shape))
      return mismatch(tensor.name(), "shape");
    if (typeName(type->getElementType()) != entry->dtype)
      return mismatch(tensor.name(), "dtype");
    const std::string &name = canonical[tensor.name()];
    if (auto found = argumentOf.find(name); found != argumentOf.end()) {
      parameters[found->second].graphNames.push_back(tensor.name());
      return success();
    }
    argumentOf[name] = parameters.size();
    NamedAttrList attributes = common(name, entry->rank, entry->trainable);
    if (!entry->file.empty()) {
      NamedAttrList storage;
      storage.append("file", builder.getStringAttr(entry->file));
      storage.append("key", builder.getStringAttr(entry->key));
      if (!entry->storedDtype.empty())
        storage.append("dtype", builder.getStringAttr(entry->storedDtype));
      attributes.append(names::kStorage, storage.getDictionary(builder.getContext()));
    } else if (failed(addStorage(tensor, attributes))) {
      return failure();
    }
    if (entry->paddingIdx) {
      if (*entry->paddingIdx < 0 || type->getRank() == 0 || *entry->paddingIdx >= type->getDimSize(0))
        return mismatch(tensor.name(), "padding_idx");
      attributes.append(names::kPaddingIdx, builder.getI64IntegerAttr(*entry->paddingIdx));
    }
    SmallVector<StringRef> aliases(entry->aliases.begin(), entry->aliases.end());
    add(tensor, *type, std::move(attributes), aliases);
    return success();
  }

  LogicalResult addByGuess(const wire::TensorProto &tensor) {
    FailureOr<Role> role = guess(tensor);
    if (failed(role))
      return failure();
    if (*role == Role::constant)
      return success();
    return addForeign(tensor, /*trainable=*/*role == Role::parameter);
  }

  FailureOr<Role> guess(const wire::TensorProto &tensor) {
    // Types that nd has no values of are reported where a node uses them.
    Type element = elementType(tensor.data_type(), builder.getContext());
    if (!element || !isa<FloatType>(element) || !used.contains(tensor.name()))
      return Role::constant;
    FailureOr<RankedTensorType> type = file.tensorType(tensor);
    if (failed(type))
      return failure();
    int64_t elements = *checkedElements(type->getShape());
    bool tooLarge = elements > maxInlineElements;
    std::string kind = kinds.lookup(tensor.name());
    if (kind == "PARAMETER")
      return Role::parameter;
    if (kind == "BUFFER" || kind == "CONSTANT_TENSOR")
      return tooLarge ? Role::frozen : Role::constant;
    if (!kinds.empty()) {
      // The exporter's optimizer has computed this from parameters or constants and the names are gone.
      if (type->getRank() >= 2 && weightLike.contains(tensor.name())) {
        computed.push_back(tensor.name());
        return Role::parameter;
      }
      return tooLarge ? Role::frozen : Role::constant;
    }
    StringRef name = tensor.name();
    bool external = tensor.data_location() == wire::TensorProto::EXTERNAL;
    bool named = name.ends_with(".weight") || name.ends_with(".bias");
    if (type->getRank() >= 1 && (external || named || elements >= largeElements))
      return Role::parameter;
    return Role::constant;
  }

  /// A parameter of a model without a sidecar. Equal places in a file are one parameter under two names.
  LogicalResult addForeign(const wire::TensorProto &tensor, bool trainable) {
    FailureOr<RankedTensorType> type = file.tensorType(tensor);
    if (failed(type))
      return failure();
    NamedAttrList attributes = common(tensor.name(), type->getRank(), trainable);
    if (failed(addStorage(tensor, attributes)))
      return failure();
    if (tensor.data_location() == wire::TensorProto::EXTERNAL && attributes.get(names::kStorage)) {
      auto [entry, isNew] = argumentAt.try_emplace(attributes.get(names::kStorage), parameters.size());
      if (!isNew) {
        Parameter &first = parameters[entry->second];
        if (first.type != *type)
          return file.error() << "initializers '" << first.graphNames.front() << "' and '" << tensor.name()
                              << "' share their bytes but not their type; export the model again";
        first.graphNames.push_back(tensor.name());
        SmallVector<StringRef> aliases(first.graphNames.begin() + 1, first.graphNames.end());
        pending[entry->second].set(names::kAliases, builder.getStrArrayAttr(aliases));
        return success();
      }
    }
    add(tensor, *type, std::move(attributes), {});
    return success();
  }

  /// Buffers stay constants, unless they are too large for the text of a program.
  LogicalResult keepLargeBuffer(const wire::TensorProto &tensor) {
    Type element = elementType(tensor.data_type(), builder.getContext());
    if (!element || !isa<FloatType>(element) || !used.contains(tensor.name()))
      return success();
    FailureOr<RankedTensorType> type = file.tensorType(tensor);
    if (failed(type))
      return failure();
    return *checkedElements(type->getShape()) > maxInlineElements ? addForeign(tensor, /*trainable=*/false) : success();
  }

  LogicalResult checkAllFound() {
    for (auto &[name, entry] : sidecar->parameters)
      if (!argumentOf.contains(name))
        return file.error() << "has no parameter '" << name << "' that the sidecar '" << sidecar->path
                            << "' lists; export model and sidecar together";
    return success();
  }

  LogicalResult mismatch(StringRef name, StringRef field) {
    return file.error() << "parameter '" << name << "' and the sidecar '" << sidecar->path << "' disagree about its "
                        << field << "; export model and sidecar together";
  }

  static StringRef typeName(Type type) {
    return type.isF32() ? "f32" : type.isF64() ? "f64" : type.isBF16() ? "bf16" : type.isF16() ? "f16" : "other";
  }

  NamedAttrList common(StringRef name, int64_t rank, bool trainable) {
    NamedAttrList attributes;
    attributes.append(names::kKind, builder.getStringAttr(names::kind::kWeight));
    attributes.append(names::kName, builder.getStringAttr(name));
    attributes.append(names::kRank, builder.getI64IntegerAttr(rank));
    attributes.append(names::kTrainable, builder.getBoolAttr(trainable));
    return attributes;
  }

  LogicalResult addStorage(const wire::TensorProto &tensor, NamedAttrList &attributes) {
    if (ModelFile::hasNoData(tensor))
      return success();
    FailureOr<FileRange> range = file.dataRange(tensor);
    if (failed(range))
      return failure();
    NamedAttrList storage;
    storage.append("file", builder.getStringAttr(range->file));
    storage.append("offset", builder.getI64IntegerAttr(range->offset));
    storage.append("length", builder.getI64IntegerAttr(range->length));
    attributes.append(names::kStorage, storage.getDictionary(builder.getContext()));
    return success();
  }

  void add(const wire::TensorProto &tensor, RankedTensorType type, NamedAttrList attributes,
           ArrayRef<StringRef> aliases) {
    if (!aliases.empty())
      attributes.append(names::kAliases, builder.getStrArrayAttr(aliases));
    parameters.push_back({{tensor.name()}, type, {}});
    pending.push_back(std::move(attributes));
  }

  const ModelFile &file;
  const std::optional<Sidecar> &sidecar;
  Builder builder;
  llvm::StringMap<std::string> kinds;
  llvm::StringSet<> used, weightLike, seen;
  SmallVector<std::string> computed;
  llvm::StringMap<const Sidecar::Parameter *> byName;
  llvm::StringMap<std::string> canonical;
  llvm::StringMap<size_t> argumentOf;
  DenseMap<Attribute, size_t> argumentAt;
  std::vector<Parameter> parameters;
  std::vector<NamedAttrList> pending;
};

} // namespace

FailureOr<std::vector<Parameter>> nd::onnx::selectParameters(const ModelFile &file,
                                                             const std::optional<Sidecar> &sidecar,
                                                             ArrayRef<VersionedNode> nodes) {
  return Selector(file, sidecar, nodes).run();
}
