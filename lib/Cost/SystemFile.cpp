//===- SystemFile.cpp - Descriptions of systems in files ------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// JSON is read as the subset of YAML that it is. Strict: a key that is unknown, missing or given twice, and a value
// that cannot be, are errors with the line.
//
//===----------------------------------------------------------------------===//

#include "nd/Cost/System.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/YAMLParser.h"

#include <cmath>

using namespace nd;
using llvm::StringRef;

namespace {

constexpr llvm::StringLiteral kElementTypes[] = {"f64", "f32", "bf16", "f16"};

class Reader {
public:
  Reader(StringRef text, StringRef fileName) : fileName(fileName), stream(text, sources) {
    sources.setDiagHandler(
        [](const llvm::SMDiagnostic &diagnostic, void *self) {
          static_cast<Reader *>(self)->fail(diagnostic.getLineNo(), diagnostic.getMessage());
        },
        this);
  }

  llvm::Expected<System> read() {
    llvm::yaml::document_iterator document = stream.begin();
    llvm::yaml::Node *root = document == stream.end() ? nullptr : document->getRoot();
    System system;
    if (!root || llvm::isa<llvm::yaml::NullNode>(root))
      fail(1, "there is no description of a system");
    else
      readSystem(root, system);
    if (problem.empty() && ++document != stream.end())
      fail(lineOf(document->getRoot()), "a file describes one system; this is a second document");
    if (!problem.empty())
      return llvm::createStringError(problem);
    return system;
  }

private:
  using Entry = llvm::function_ref<bool(StringRef key, llvm::yaml::Node *value)>;

  /// Only the first problem is reported: what follows it may be its consequence.
  void fail(unsigned line, const llvm::Twine &message) {
    if (problem.empty())
      problem = (fileName + ":" + llvm::Twine(line) + ": " + message).str();
  }

  unsigned lineOf(llvm::yaml::Node *node) {
    return node ? sources.getLineAndColumn(node->getSourceRange().Start).first : 0;
  }

  /// Calls `entry` with each key; it returns false for one that it does not know.
  void readMap(llvm::yaml::Node *node, const llvm::Twine &what, llvm::ArrayRef<StringRef> required, Entry entry) {
    auto *map = llvm::dyn_cast_or_null<llvm::yaml::MappingNode>(node);
    unsigned line = lineOf(node);
    if (!map)
      return fail(line, what + " must be a mapping of keys to values");
    llvm::StringSet<> seen;
    for (llvm::yaml::KeyValueNode &pair : *map) {
      auto *key = llvm::dyn_cast_or_null<llvm::yaml::ScalarNode>(pair.getKey());
      if (!key || !problem.empty())
        return fail(line, what + " has a key that is no text");
      llvm::SmallString<32> storage;
      StringRef name = key->getValue(storage);
      unsigned keyLine = lineOf(key);
      if (!seen.insert(name).second)
        return fail(keyLine, "key '" + name + "' of " + what + " is given twice");
      if (!entry(name, pair.getValue()))
        return fail(keyLine, what + " has no key '" + name + "'");
      if (!problem.empty())
        return;
    }
    for (StringRef name : required)
      if (!seen.contains(name))
        return fail(line, what + " lacks the key '" + name + "'");
  }

  StringRef scalar(llvm::yaml::Node *node, StringRef key, llvm::SmallVectorImpl<char> &storage) {
    if (auto *value = llvm::dyn_cast_or_null<llvm::yaml::ScalarNode>(node))
      return value->getValue(storage);
    fail(lineOf(node), "the value of '" + key + "' must be one value");
    return "";
  }

  /// A finite number above 0.
  double positive(llvm::yaml::Node *node, StringRef key, bool zeroAllowed = false) {
    llvm::SmallString<32> storage;
    StringRef text = scalar(node, key, storage);
    double value = 0;
    if (text.getAsDouble(value) || !std::isfinite(value) || value < 0 || (value == 0 && !zeroAllowed))
      fail(lineOf(node), "the value of '" + key + "' is '" + text + "', but must be a " +
                             (zeroAllowed ? "number that is not negative" : "number above 0"));
    return value;
  }

  bool boolean(llvm::yaml::Node *node, StringRef key) {
    llvm::SmallString<32> storage;
    StringRef text = scalar(node, key, storage);
    if (text != "true" && text != "false")
      fail(lineOf(node), "the value of '" + key + "' is '" + text + "', but must be true or false");
    return text == "true";
  }

  void readFlops(llvm::yaml::Node *node, System &system) {
    readMap(node, "'flops'", {"f32"}, [&](StringRef key, llvm::yaml::Node *value) {
      if (!llvm::is_contained(kElementTypes, key))
        return false;
      system.flops[key.str()] = positive(value, key);
      return true;
    });
  }

  void readLink(llvm::yaml::Node *node, StringRef name, Link &link) {
    readMap(node, "'" + name + "'", {"bandwidth", "latency"}, [&](StringRef key, llvm::yaml::Node *value) {
      if (key == "bandwidth")
        link.bandwidth = positive(value, key);
      else if (key == "latency")
        link.latency = positive(value, key, /*zeroAllowed=*/true);
      else
        return false;
      return true;
    });
  }

  void readRanksPerNode(llvm::yaml::Node *node, System &system) {
    llvm::SmallString<32> storage;
    StringRef text = scalar(node, "ranks_per_node", storage);
    int64_t ranks = 0;
    if (text.getAsInteger(10, ranks) || ranks < 1)
      fail(lineOf(node), "the value of 'ranks_per_node' is '" + text + "', but must be a whole number from 1 on");
    system.ranksPerNode = ranks;
  }

  void readSystem(llvm::yaml::Node *root, System &system) {
    readMap(root, "the system",
            {"name", "flops", "memory_bytes", "memory_bandwidth", "inside_node", "between_nodes", "ranks_per_node"},
            [&](StringRef key, llvm::yaml::Node *value) {
              llvm::SmallString<32> storage;
              if (key == "name")
                system.name = scalar(value, key, storage).str();
              else if (key == "flops")
                readFlops(value, system);
              else if (key == "memory_bytes")
                system.memoryBytes = positive(value, key);
              else if (key == "memory_bandwidth")
                system.memoryBandwidth = positive(value, key);
              else if (key == "inside_node")
                readLink(value, key, system.insideNode);
              else if (key == "between_nodes")
                readLink(value, key, system.betweenNodes);
              else if (key == "ranks_per_node")
                readRanksPerNode(value, system);
              else if (key == "overlap")
                system.overlap = boolean(value, key);
              else if (key == "published")
                system.published = boolean(value, key);
              else
                return false;
              return true;
            });
  }

  StringRef fileName;
  llvm::SourceMgr sources;
  std::string problem;
  llvm::yaml::Stream stream;
};

} // namespace

llvm::Expected<System> System::parse(StringRef text, StringRef fileName) { return Reader(text, fileName).read(); }
