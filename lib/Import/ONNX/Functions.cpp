//===- Functions.cpp - Inlines a model's local functions ------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Functions.h"

#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace nd::onnx;

namespace {

/// Calls nest at most this deep, and make at most this many nodes: a damaged file cannot make the import run away.
constexpr unsigned maxDepth = 64;
constexpr size_t maxNodes = size_t(1) << 24;

StringRef normalizedDomain(StringRef domain) { return domain == "ai.onnx" ? StringRef() : domain; }

std::string functionKey(StringRef domain, StringRef name, StringRef overload) {
  return (normalizedDomain(domain) + "::" + name + ":" + overload).str();
}

template <typename Imports> llvm::StringMap<int64_t> versionsOf(const Imports &imports) {
  llvm::StringMap<int64_t> versions;
  for (const auto &import : imports)
    versions[normalizedDomain(import.domain())] = import.version();
  return versions;
}

/// Names inside one expansion of a function are made unique by a prefix; its inputs and outputs take the caller's
/// names.
class Flattener {
public:
  explicit Flattener(ModelFile &file) : file(file) {
    for (const wire::FunctionProto &function : file.proto().functions())
      functions[functionKey(function.domain(), function.name(), function.overload())] = &function;
  }

  LogicalResult append(wire::NodeProto &&node, const llvm::StringMap<int64_t> &versions, unsigned depth) {
    auto found = functions.find(functionKey(node.domain(), node.op_type(), node.overload()));
    if (found != functions.end())
      return expand(node, *found->second, depth);
    auto version = versions.find(normalizedDomain(node.domain()));
    if (version == versions.end())
      return file.error() << "node '" << node.name() << "' (" << node.op_type() << ") is of domain '" << node.domain()
                          << "', of which the model imports no version; export the model again";
    if (nodes.size() >= maxNodes)
      return file.error() << "has more than " << maxNodes << " nodes after its functions are inlined";
    nodes.push_back({std::move(node), version->second});
    return success();
  }

  std::vector<VersionedNode> take() { return std::move(nodes); }

private:
  LogicalResult expand(const wire::NodeProto &call, const wire::FunctionProto &function, unsigned depth) {
    if (depth >= maxDepth)
      return file.error() << "function '" << function.name() << "' calls itself, or calls nest deeper than "
                          << maxDepth;
    if (call.input_size() > function.input_size() || call.output_size() > function.output_size())
      return file.error() << "call '" << call.name() << "' of function '" << function.name()
                          << "' has more operands or results than the function; export the model again";
    std::string prefix = ("fn" + Twine(expansions++) + "/").str();
    llvm::StringMap<std::string> renamed;
    for (int i = 0; i < function.input_size(); ++i)
      renamed[function.input(i)] = i < call.input_size() ? call.input(i) : "";
    for (int i = 0; i < call.output_size(); ++i)
      if (!call.output(i).empty())
        renamed[function.output(i)] = call.output(i);
    auto rename = [&](std::string &name) {
      if (name.empty())
        return;
      auto [entry, isNew] = renamed.try_emplace(name);
      if (isNew)
        entry->second = prefix + name;
      name = entry->second;
    };

    llvm::StringMap<const wire::AttributeProto *> arguments;
    for (const wire::AttributeProto &attribute : function.attribute_proto())
      arguments[attribute.name()] = &attribute;
    for (const wire::AttributeProto &attribute : call.attribute())
      arguments[attribute.name()] = &attribute;

    // A function may hand one of its inputs through as an output; then no node of the body makes that name.
    for (int i = 0; i < call.output_size(); ++i) {
      int position =
          std::find(function.input().begin(), function.input().end(), function.output(i)) - function.input().begin();
      if (position < call.input_size() && !call.output(i).empty()) {
        wire::NodeProto identity;
        identity.set_op_type("Identity");
        identity.add_input(call.input(position));
        identity.add_output(call.output(i));
        nodes.push_back({std::move(identity), 1});
      }
    }
    llvm::StringMap<int64_t> versions = versionsOf(function.opset_import());
    for (const wire::NodeProto &original : function.node()) {
      wire::NodeProto node = original;
      for (std::string &name : *node.mutable_input())
        rename(name);
      for (std::string &name : *node.mutable_output())
        rename(name);
      if (!node.name().empty())
        node.set_name(prefix + node.name());
      if (node.metadata_props().empty())
        *node.mutable_metadata_props() = call.metadata_props();
      node.clear_attribute();
      for (const wire::AttributeProto &attribute : original.attribute()) {
        if (!attribute.has_ref_attr_name()) {
          *node.add_attribute() = attribute;
          continue;
        }
        // An argument that is neither given nor has a default leaves the attribute out: the node's own default holds.
        if (auto argument = arguments.find(attribute.ref_attr_name()); argument != arguments.end()) {
          wire::AttributeProto *bound = node.add_attribute();
          *bound = *argument->second;
          bound->set_name(attribute.name());
        }
      }
      if (failed(append(std::move(node), versions, depth + 1)))
        return failure();
    }
    return success();
  }

  ModelFile &file;
  llvm::StringMap<const wire::FunctionProto *> functions;
  std::vector<VersionedNode> nodes;
  size_t expansions = 0;
};

} // namespace

FailureOr<std::vector<VersionedNode>> nd::onnx::flattenNodes(ModelFile &file) {
  Flattener flattener(file);
  llvm::StringMap<int64_t> versions = versionsOf(file.proto().opset_import());
  for (wire::NodeProto &node : *file.proto().mutable_graph()->mutable_node())
    if (failed(flattener.append(std::move(node), versions, 0)))
      return failure();
  return flattener.take();
}
