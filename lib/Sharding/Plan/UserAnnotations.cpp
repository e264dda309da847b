//===- UserAnnotations.cpp - What --annotate says -------------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Plan/UserAnnotations.h"
#include "nd/Dialect/ND/IR/Names.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/GlobPattern.h"

using namespace mlir;
using namespace nd;

namespace {

class UserAnnotations {
public:
  explicit UserAnnotations(Program &program) : program(program), function(program.function) {}

  /// In attributes, too, an axis that was split stands for its parts.
  void splitAxes() {
    for (unsigned index : llvm::seq(function.getNumArguments()))
      if (auto given = function.getArgAttrOfType<ShardingAttr>(index, names::kSharding))
        function.setArgAttr(index, names::kSharding, withParts(given));
    for (unsigned index : llvm::seq(function.getNumResults()))
      if (auto given = function.getResultAttrOfType<ShardingAttr>(index, names::kSharding))
        function.setResultAttr(index, names::kSharding, withParts(given));
  }

  LogicalResult apply(StringRef text) {
    auto [glob, list] = text.rsplit('=');
    list = list.trim();
    if (glob.empty() || !list.consume_front("[") || !list.consume_back("]"))
      return refuse(text) << "write GLOB=[AXES,...] with an entry for each dimension, as in '*.q_proj.weight=[tp,_]'";
    llvm::Expected<llvm::GlobPattern> pattern = llvm::GlobPattern::create(glob.trim());
    if (!pattern)
      return refuse(text) << llvm::toString(pattern.takeError());
    FailureOr<SmallVector<SmallVector<StringAttr>>> dims = readDims(text, list);
    if (failed(dims))
      return failure();
    unsigned matches = 0;
    for (unsigned index : llvm::seq(function.getNumArguments())) {
      StringRef kind = names::argKind(function, index);
      if ((kind != names::kind::kWeight && kind != names::kind::kInput) ||
          llvm::none_of(names::userNames(function, index), [&](StringRef name) { return pattern->match(name); }))
        continue;
      ++matches;
      if (failed(annotate(text, index, *dims)))
        return failure();
    }
    if (matches == 0)
      return refuse(text) << "no parameter or input has such a name; " << examples();
    return success();
  }

private:
  InFlightDiagnostic refuse(StringRef text) { return function.emitError() << "--annotate=" << text << ": "; }

  std::string examples() {
    llvm::SetVector<StringRef> some;
    for (unsigned index : llvm::seq(function.getNumArguments()))
      if (names::argKind(function, index) == names::kind::kWeight && some.size() < 3)
        some.insert(names::userName(function, index));
    return "some that exist are '" + llvm::join(some, "', '") + "'";
  }

  FailureOr<SmallVector<SmallVector<StringAttr>>> readDims(StringRef text, StringRef list) {
    SmallVector<SmallVector<StringAttr>> dims;
    SmallVector<StringRef> entries;
    if (!list.empty()) // a single number has no dimension
      list.split(entries, ',');
    for (StringRef entry : entries) {
      SmallVector<StringAttr> &axes = dims.emplace_back();
      entry = entry.trim();
      if (entry == "_")
        continue;
      SmallVector<StringRef> parts;
      entry.split(parts, '+');
      for (StringRef part : parts)
        if (failed(appendAxis(text, part.trim(), axes)))
          return failure();
    }
    return dims;
  }

  ShardingAttr withParts(ShardingAttr given) {
    SmallVector<SmallVector<StringAttr>> dims;
    for (int64_t dim : llvm::seq(given.getRank())) {
      SmallVector<StringAttr> &axes = dims.emplace_back();
      for (StringAttr name : given.getDimAxes(dim)) {
        size_t before = axes.size();
        for (auto axis : program.mesh.getAxes().getAsRange<MeshAxisAttr>())
          if (axis.getName().getValue().starts_with((name.getValue() + ".").str()))
            axes.push_back(axis.getName());
        if (axes.size() == before)
          axes.push_back(name);
      }
    }
    return ShardingAttr::get(function.getContext(), given.getMesh(), dims, given.getUnreducedAxes(), given.getKind());
  }

  /// An axis by its name; one that was split stands for its parts.
  LogicalResult appendAxis(StringRef text, StringRef name, SmallVectorImpl<StringAttr> &axes) {
    SmallVector<std::string> known;
    bool found = false;
    for (auto axis : program.mesh.getAxes().getAsRange<MeshAxisAttr>()) {
      StringRef own = axis.getName().getValue();
      known.push_back(own.str());
      if (own != name && own.split('.').first != name)
        continue;
      found = true;
      if (axis.getSize() > 1)
        axes.push_back(axis.getName());
    }
    if (found)
      return success();
    return refuse(text) << "axis '" << name << "' is not in the mesh; its axes are " << llvm::join(known, ", ");
  }

  LogicalResult annotate(StringRef text, unsigned index, ArrayRef<SmallVector<StringAttr>> dims) {
    auto type = cast<RankedTensorType>(function.getArgumentTypes()[index]);
    std::string tensor = describeArgument(function, index);
    if (type.getRank() != static_cast<int64_t>(dims.size()))
      return refuse(text) << "has " << dims.size() << " entries, but " << tensor << " has " << type.getRank()
                          << " dimensions";
    SmallVector<StringAttr> all;
    for (ArrayRef<StringAttr> axes : dims)
      for (StringAttr axis : axes) {
        if (llvm::is_contained(all, axis))
          return refuse(text) << "axis '" << axis.getValue() << "' is named twice; it shards one dimension of a tensor";
        all.push_back(axis);
      }
    auto sharding =
        ShardingAttr::get(function.getContext(), FlatSymbolRefAttr::get(program.mesh.getSymNameAttr()), dims);
    Attribute before = function.getArgAttr(index, names::kSharding);
    if (before && before != sharding)
      return refuse(text) << tensor << " is annotated already, " << before;
    function.setArgAttr(index, names::kSharding, sharding);
    return success();
  }

  Program &program;
  func::FuncOp function;
};

} // namespace

LogicalResult nd::applyUserAnnotations(Program &program, ArrayRef<std::string> annotations) {
  UserAnnotations user(program);
  user.splitAxes();
  for (const std::string &text : annotations)
    if (failed(user.apply(text)))
      return failure();
  return success();
}
