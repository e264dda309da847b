//===- ImportVerbatim.cpp - From an ONNX file to onnx.node operations -----===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Functions.h"
#include "Locations.h"
#include "ModelFile.h"
#include "Parameters.h"
#include "Sidecar.h"

#include "nd/Dialect/ND/IR/Names.h"
#include "nd/Dialect/ONNX/IR/ONNX.h"
#include "nd/Import/ONNX/ImportModel.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace mlir;
using namespace nd;
using namespace nd::onnx;

namespace {

class VerbatimBuilder {
public:
  VerbatimBuilder(ModelFile &file, const std::optional<Sidecar> &sidecar, const ImportOptions &options)
      : file(file), sidecar(sidecar), options(options), builder(file.location().getContext()) {}

  OwningOpRef<ModuleOp> build() {
    OwningOpRef<ModuleOp> module = ModuleOp::create(file.location());
    auto nodes = flattenNodes(file);
    if (failed(nodes))
      return {};
    auto parameters = selectParameters(file, sidecar, *nodes);
    if (failed(parameters))
      return {};
    for (const wire::TensorProto &tensor : graph().initializer())
      initializers[tensor.name()] = &tensor;
    for (const wire::ValueInfoProto &value : graph().value_info())
      stated[value.name()] = &value.type();
    for (const wire::ValueInfoProto &value : graph().output())
      stated[value.name()] = &value.type();

    builder.setInsertionPointToEnd(module->getBody());
    if (failed(addFunction(*parameters)) || failed(addNodes(*nodes)) || failed(addResults()))
      return {};
    setModelAttribute(*module);
    return module;
  }

private:
  const wire::GraphProto &graph() const { return file.proto().graph(); }

  // Sizes
  // ---------------------------------------------------------------------------------------------------------------

  /// The size given on the command line for dimension `dim` of the first input, and the option that gives it.
  std::pair<int64_t, StringRef> optionFor(unsigned dim) const {
    return dim == 0 ? std::make_pair(options.batch, StringRef("--batch"))
                    : std::make_pair(options.seq, StringRef("--seq"));
  }

  LogicalResult bindSymbol(StringRef input, unsigned dim, StringRef symbol) {
    auto [size, option] = optionFor(dim);
    if (size <= 0)
      return file.error() << "dimension " << dim << " of input '" << input << "' is the symbol '" << symbol
                          << "'; give its size with " << option;
    if (sidecar)
      if (auto bounds = sidecar->symbols.find(symbol);
          bounds != sidecar->symbols.end() && (size < bounds->second.first || size > bounds->second.second))
        return file.error() << option << " " << size << " is outside the range that the model was exported for: '"
                            << symbol << "' is " << bounds->second.first << " to " << bounds->second.second
                            << "; choose a size in it";
    auto [entry, isNew] = symbols.try_emplace(symbol, size);
    if (!isNew && entry->second != size)
      return file.error() << "symbol '" << symbol << "' is both " << entry->second << " and " << size
                          << "; give equal sizes for it";
    return success();
  }

  /// Dimensions 0 and 1 of the first input are batch and sequence: they bind the symbols, or must equal what is given.
  LogicalResult bindFirstInput(const wire::ValueInfoProto &input) {
    const auto &shape = input.type().tensor_type().shape();
    for (int dim = 0; dim < std::min(2, shape.dim_size()); ++dim) {
      if (!shape.dim(dim).has_dim_value()) {
        StringRef symbol = shape.dim(dim).dim_param();
        if (failed(bindSymbol(input.name(), dim, symbol)))
          return failure();
        sizes[dim] = optionFor(dim).first;
        continue;
      }
      auto [size, option] = optionFor(dim);
      int64_t fixed = shape.dim(dim).dim_value();
      if (size > 0 && size != fixed)
        return file.error() << "was exported with the fixed size " << fixed << " for dimension " << dim << " of input '"
                            << input.name() << "', but " << option << " is " << size
                            << "; leave the option out, or export with symbols";
      sizes[dim] = fixed;
    }
    if (sidecar && sidecar->maxPositions && sizes[1] > *sidecar->maxPositions)
      return file.error() << "--seq " << sizes[1] << " is more than the " << *sidecar->maxPositions
                          << " positions that the model has; give at most that";
    return success();
  }

  FailureOr<RankedTensorType> inputType(const wire::ValueInfoProto &input, bool isFirst) {
    if (!input.type().has_tensor_type() || !input.type().tensor_type().has_shape())
      return file.error() << "input '" << input.name() << "' is not a tensor with a shape; export the model again";
    Type element = elementType(input.type().tensor_type().elem_type(), builder.getContext());
    if (!element)
      return file.error() << "input '" << input.name() << "' has element type "
                          << elementTypeName(input.type().tensor_type().elem_type()) << ", which nd does not support";
    SmallVector<int64_t> shape;
    for (auto [dim, size] : llvm::enumerate(input.type().tensor_type().shape().dim())) {
      if (size.has_dim_value()) {
        shape.push_back(size.dim_value());
      } else if (isFirst && dim < 2) {
        shape.push_back(sizes[dim]);
      } else if (auto bound = symbols.find(size.dim_param()); !size.dim_param().empty() && bound != symbols.end()) {
        shape.push_back(bound->second);
      } else {
        return file.error() << "dimension " << dim << " of input '" << input.name() << "' is the symbol '"
                            << size.dim_param()
                            << "', which the first input does not bind; export it with a fixed size";
      }
    }
    std::optional<int64_t> elements = checkedElements(shape);
    if (!elements || *elements == 0)
      return file.error() << "input '" << input.name()
                          << "' has a size that is negative, zero or too large; give --batch and --seq of at least 1";
    return RankedTensorType::get(shape, element);
  }

  /// What the file states about a value, with sizes bound; `none` when it states nothing.
  Type statedType(StringRef name) {
    const wire::TypeProto *type = stated.lookup(name);
    if (!type || !type->has_tensor_type())
      return builder.getNoneType();
    Type element = elementType(type->tensor_type().elem_type(), builder.getContext());
    if (!element)
      return builder.getNoneType();
    if (!type->tensor_type().has_shape())
      return UnrankedTensorType::get(element);
    SmallVector<int64_t> shape;
    for (const auto &size : type->tensor_type().shape().dim()) {
      auto bound = symbols.find(size.dim_param());
      int64_t known = size.has_dim_value()     ? size.dim_value()
                      : bound != symbols.end() ? bound->second
                                               : ShapedType::kDynamic;
      shape.push_back(known < 0 ? ShapedType::kDynamic : known);
    }
    return RankedTensorType::get(shape, element);
  }

  // The function
  // --------------------------------------------------------------------------------------------------------

  LogicalResult addFunction(ArrayRef<Parameter> parameters) {
    SmallVector<const wire::ValueInfoProto *> inputs;
    for (const wire::ValueInfoProto &input : graph().input())
      if (!initializers.contains(input.name()))
        inputs.push_back(&input);
    if (inputs.empty())
      return file.error() << "has no inputs; export the model with example inputs";
    if (failed(bindFirstInput(*inputs.front())))
      return failure();

    SmallVector<Type> types;
    SmallVector<Attribute> attributes;
    for (const wire::ValueInfoProto *input : inputs) {
      FailureOr<RankedTensorType> type = inputType(*input, input == inputs.front());
      if (failed(type) || failed(checkAgainstSidecar(input->name(), *type)))
        return failure();
      types.push_back(*type);
      attributes.push_back(
          builder.getDictionaryAttr({builder.getNamedAttr(names::kKind, builder.getStringAttr(names::kind::kInput)),
                                     builder.getNamedAttr(names::kName, builder.getStringAttr(input->name()))}));
    }
    if (sidecar)
      for (auto &entry : sidecar->inputs)
        if (llvm::none_of(inputs, [&](const wire::ValueInfoProto *input) { return input->name() == entry.first; }))
          return file.error() << "has no input '" << entry.first << "' that the sidecar '" << sidecar->path
                              << "' lists; export model and sidecar together";
    for (const Parameter &parameter : parameters) {
      types.push_back(parameter.type);
      attributes.push_back(parameter.attributes);
    }
    function = func::FuncOp::create(builder, file.location(), names::kForward, builder.getFunctionType(types, {}));
    function.setAllArgAttrs(builder.getArrayAttr(attributes));
    Block *body = function.addEntryBlock();
    builder.setInsertionPointToEnd(body);
    for (auto [input, argument] : llvm::zip(inputs, body->getArguments()))
      if (failed(define(input->name(), argument)))
        return failure();
    for (auto [parameter, argument] : llvm::zip(parameters, body->getArguments().drop_front(inputs.size())))
      for (const std::string &name : parameter.graphNames)
        if (failed(define(name, argument)))
          return failure();
    return success();
  }

  LogicalResult checkAgainstSidecar(StringRef name, RankedTensorType type) {
    if (!sidecar || sidecar->inputs.empty())
      return success();
    auto entry = sidecar->inputs.find(name.str());
    if (entry == sidecar->inputs.end())
      return file.error() << "input '" << name << "' is not in the sidecar '" << sidecar->path
                          << "'; export model and sidecar together";
    bool agrees = entry->second.size() == size_t(type.getRank());
    for (int64_t dim = 0; agrees && dim < type.getRank(); ++dim)
      agrees = entry->second[dim] < 0 || entry->second[dim] == type.getDimSize(dim);
    if (!agrees)
      return file.error() << "input '" << name << "' and the sidecar '" << sidecar->path
                          << "' disagree about its shape; export model and sidecar together";
    return success();
  }

  LogicalResult define(StringRef name, Value value) {
    if (!values.try_emplace(name, value).second)
      return file.error() << "value '" << name << "' is defined twice; export the model again";
    return success();
  }

  /// The value of that name: defined already, or a constant initializer, which is read when it is first used.
  FailureOr<Value> valueOf(StringRef name, const Twine &user) {
    if (auto found = values.find(name); found != values.end())
      return found->second;
    const wire::TensorProto *tensor = initializers.lookup(name);
    if (!tensor)
      return file.error() << user << " uses '" << name << "', which nothing before it defines; export the model again";
    FailureOr<DenseElementsAttr> elements = file.read(*tensor);
    if (failed(elements))
      return failure();
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(&function.front());
    Location loc = NameLoc::get(builder.getStringAttr(name));
    Value value = ConstantOp::create(builder, loc, elements->getType(), name, *elements);
    values[name] = value;
    return value;
  }

  FailureOr<Attribute> attributeOf(const wire::NodeProto &node, const wire::AttributeProto &attribute) {
    switch (attribute.type()) {
    case wire::AttributeProto::FLOAT:
      return Attribute(builder.getF32FloatAttr(attribute.f()));
    case wire::AttributeProto::INT:
      return Attribute(builder.getI64IntegerAttr(attribute.i()));
    case wire::AttributeProto::STRING:
      return Attribute(builder.getStringAttr(attribute.s()));
    case wire::AttributeProto::FLOATS:
      return Attribute(builder.getDenseF32ArrayAttr({attribute.floats().data(), size_t(attribute.floats_size())}));
    case wire::AttributeProto::INTS:
      return Attribute(builder.getDenseI64ArrayAttr({attribute.ints().data(), size_t(attribute.ints_size())}));
    case wire::AttributeProto::STRINGS: {
      SmallVector<StringRef> strings(attribute.strings().begin(), attribute.strings().end());
      return Attribute(builder.getStrArrayAttr(strings));
    }
    case wire::AttributeProto::TENSOR: {
      FailureOr<DenseElementsAttr> elements = file.read(attribute.t());
      if (failed(elements))
        return failure();
      return Attribute(*elements);
    }
    case wire::AttributeProto::GRAPH:
      return Attribute(builder.getStringAttr("graph '" + attribute.g().name() + "'"));
    default:
      return file.error() << "attribute '" << attribute.name() << "' of node '" << node.name() << "' ("
                          << node.op_type() << ") has type " << attribute.type() << ", which nd-import does not read";
    }
  }

  LogicalResult addNodes(ArrayRef<VersionedNode> nodes) {
    for (const auto &[node, version] : nodes) {
      SmallVector<Value> operands;
      for (const std::string &input : node.input()) {
        if (input.empty()) {
          operands.push_back(AbsentOp::create(builder, builder.getUnknownLoc(), builder.getNoneType()));
          continue;
        }
        FailureOr<Value> value = valueOf(input, "node '" + node.name() + "' (" + node.op_type() + ")");
        if (failed(value))
          return failure();
        operands.push_back(*value);
      }
      NamedAttrList attributes;
      for (const wire::AttributeProto &attribute : node.attribute()) {
        FailureOr<Attribute> value = attributeOf(node, attribute);
        if (failed(value))
          return failure();
        attributes.set(attribute.name().empty() ? "_" : attribute.name(), *value);
      }
      SmallVector<Type> types;
      for (const std::string &output : node.output())
        types.push_back(output.empty() ? builder.getNoneType() : statedType(output));
      StringRef domain = node.domain() == "ai.onnx" ? StringRef() : StringRef(node.domain());
      auto op = NodeOp::create(builder, locationOf(node, builder.getContext()), types, node.op_type(), domain, version,
                               node.name(), attributes.getDictionary(builder.getContext()), operands);
      for (auto [output, result] : llvm::zip(node.output(), op.getOutputs()))
        if (!output.empty() && failed(define(output, result)))
          return failure();
    }
    return success();
  }

  /// What a result is: by the sidecar, else logits when it looks like them.
  FailureOr<StringRef> roleOf(const wire::ValueInfoProto &output) {
    if (sidecar && !sidecar->outputRoles.empty()) {
      auto role = sidecar->outputRoles.find(output.name());
      if (role == sidecar->outputRoles.end())
        return file.error() << "output '" << output.name() << "' is not in the sidecar '" << sidecar->path
                            << "'; export model and sidecar together";
      return StringRef(role->second);
    }
    // [batch, seq, vocabulary] of floats, from an input of token ids.
    const auto &input = cast<RankedTensorType>(function.getArgumentTypes().front());
    bool fromTokens = input.getRank() == 2 && input.getElementType().isInteger();
    const auto &type = output.type().tensor_type();
    bool isFloat = isa_and_nonnull<FloatType>(elementType(type.elem_type(), builder.getContext()));
    bool isLogits = fromTokens && isFloat && type.shape().dim_size() == 3 && graph().output_size() == 1;
    return StringRef(isLogits ? names::kind::kLogits : names::kind::kOutput);
  }

  LogicalResult addResults() {
    if (graph().output().empty())
      return file.error() << "has no outputs; export the model again";
    SmallVector<Value> results;
    SmallVector<Attribute> attributes;
    for (const wire::ValueInfoProto &output : graph().output()) {
      FailureOr<Value> value = valueOf(output.name(), "the output");
      FailureOr<StringRef> role = roleOf(output);
      if (failed(value) || failed(role))
        return failure();
      results.push_back(*value);
      attributes.push_back(
          builder.getDictionaryAttr({builder.getNamedAttr(names::kKind, builder.getStringAttr(*role)),
                                     builder.getNamedAttr(names::kName, builder.getStringAttr(output.name()))}));
    }
    if (sidecar)
      for (auto &entry : sidecar->outputRoles)
        if (llvm::none_of(graph().output(), [&](const auto &output) { return output.name() == entry.first; }))
          return file.error() << "has no output '" << entry.first << "' that the sidecar '" << sidecar->path
                              << "' lists; export model and sidecar together";
    func::ReturnOp::create(builder, file.location(), results);
    function.setType(builder.getFunctionType(function.getArgumentTypes(), ValueRange(results).getTypes()));
    function.setAllResultAttrs(builder.getArrayAttr(attributes));
    return success();
  }

  void setModelAttribute(ModuleOp module) {
    NamedAttrList model;
    auto set = [&](StringRef key, Attribute value) { model.set(key, value); };
    auto strings = [&](ArrayRef<std::string> list) {
      SmallVector<StringRef> refs(list.begin(), list.end());
      return builder.getStrArrayAttr(refs);
    };
    SmallString<128> folder(file.folder());
    if (sidecar && sidecar->weightsDir) {
      if (llvm::sys::path::is_absolute(*sidecar->weightsDir))
        folder = *sidecar->weightsDir;
      else
        llvm::sys::path::append(folder, *sidecar->weightsDir);
    }
    llvm::sys::fs::make_absolute(folder);
    llvm::sys::path::remove_dots(folder, /*remove_dot_dot=*/true);
    set("name", builder.getStringAttr(llvm::sys::path::stem(options.modelPath)));
    set("weights_dir", builder.getStringAttr(folder));
    set("batch", builder.getI64IntegerAttr(sizes[0]));
    set("seq", builder.getI64IntegerAttr(sizes[1]));
    set("files", strings(sidecar ? ArrayRef<std::string>(sidecar->files) : ArrayRef<std::string>()));
    set("blocks", strings(sidecar ? ArrayRef<std::string>(sidecar->blocks) : ArrayRef<std::string>()));
    set("ignore_index", builder.getI64IntegerAttr(sidecar ? sidecar->ignoreIndex.value_or(-100) : -100));
    if (sidecar && !sidecar->task.empty())
      set("task", builder.getStringAttr(sidecar->task));
    if (sidecar && sidecar->vocabSize)
      set("vocab_size", builder.getI64IntegerAttr(*sidecar->vocabSize));
    if (sidecar && sidecar->maxPositions)
      set("max_positions", builder.getI64IntegerAttr(*sidecar->maxPositions));
    module->setAttr(names::kModel, model.getDictionary(builder.getContext()));
  }

  ModelFile &file;
  const std::optional<Sidecar> &sidecar;
  const ImportOptions &options;
  OpBuilder builder;
  func::FuncOp function;
  int64_t sizes[2] = {1, 1};
  llvm::StringMap<int64_t> symbols;
  llvm::StringMap<Value> values;
  llvm::StringMap<const wire::TensorProto *> initializers;
  llvm::StringMap<const wire::TypeProto *> stated;
};

} // namespace

OwningOpRef<ModuleOp> nd::onnx::importVerbatim(const ImportOptions &options, MLIRContext *context) {
  context->loadDialect<ONNXDialect, func::FuncDialect>();
  FailureOr<ModelFile> file = ModelFile::read(options.modelPath, context);
  if (failed(file))
    return {};
  auto sidecar = Sidecar::read(options.modelPath, context);
  if (failed(sidecar))
    return {};
  return VerbatimBuilder(*file, *sidecar, options).build();
}
