//===- ShardingAttrs.cpp - Mesh axes and shardings ------------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "nd/Dialect/ND/IR/ND.h"
#include "llvm/ADT/SmallPtrSet.h"

using namespace mlir;
using namespace nd;

LogicalResult MeshAxisAttr::verify(function_ref<InFlightDiagnostic()> emitError, StringAttr name, int64_t size,
                                   AxisRole) {
  if (name.getValue().empty())
    return emitError() << "a mesh axis needs a name";
  if (size < 1)
    return emitError() << "mesh axis '" << name.getValue() << "' has size " << size << ", but a size is at least 1";
  return success();
}

//===----------------------------------------------------------------------===//
// ShardingAttr
//===----------------------------------------------------------------------===//

namespace {

SmallVector<StringAttr> toAxes(Attribute list) {
  return llvm::map_to_vector(cast<ArrayAttr>(list), [](Attribute axis) { return cast<StringAttr>(axis); });
}

ArrayAttr toArray(MLIRContext *context, ArrayRef<StringAttr> axes) {
  return ArrayAttr::get(context, SmallVector<Attribute>(axes.begin(), axes.end()));
}

/// `{"dp", "fsdp"}`
FailureOr<ArrayAttr> parseAxes(AsmParser &parser) {
  SmallVector<Attribute> axes;
  auto parseAxis = [&]() -> ParseResult {
    std::string name;
    if (parser.parseString(&name))
      return failure();
    axes.push_back(StringAttr::get(parser.getContext(), name));
    return success();
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Braces, parseAxis))
    return failure();
  return ArrayAttr::get(parser.getContext(), axes);
}

void printAxes(AsmPrinter &printer, ArrayAttr axes) {
  printer << '{';
  llvm::interleaveComma(axes, printer);
  printer << '}';
}

} // namespace

ShardingAttr ShardingAttr::get(MLIRContext *context, FlatSymbolRefAttr mesh, ArrayRef<SmallVector<StringAttr>> dims,
                               ArrayRef<StringAttr> unreduced, ReductionKind kind) {
  SmallVector<Attribute> lists;
  for (ArrayRef<StringAttr> axes : dims)
    lists.push_back(toArray(context, axes));
  // The kind of no reduction at all must not tell two equal shardings apart.
  return get(context, mesh, ArrayAttr::get(context, lists), toArray(context, unreduced),
             unreduced.empty() ? ReductionKind::sum : kind);
}

ShardingAttr ShardingAttr::getReplicated(FlatSymbolRefAttr mesh, int64_t rank) {
  return get(mesh.getContext(), mesh, SmallVector<SmallVector<StringAttr>>(rank));
}

SmallVector<StringAttr> ShardingAttr::getDimAxes(int64_t dim) const { return toAxes(getDims()[dim]); }

SmallVector<StringAttr> ShardingAttr::getUnreducedAxes() const { return toAxes(getUnreduced()); }

bool ShardingAttr::isReplicated() const {
  return !isUnreduced() && llvm::all_of(getDims(), [](Attribute axes) { return cast<ArrayAttr>(axes).empty(); });
}

LogicalResult ShardingAttr::verify(function_ref<InFlightDiagnostic()> emitError, FlatSymbolRefAttr, ArrayAttr dims,
                                   ArrayAttr unreduced, ReductionKind) {
  llvm::SmallPtrSet<Attribute, 8> used;
  auto verifyAxes = [&](Attribute list) -> LogicalResult {
    auto axes = dyn_cast<ArrayAttr>(list);
    if (!axes)
      return emitError() << "expected a list of axis names but found " << list;
    for (Attribute axis : axes) {
      if (!isa<StringAttr>(axis))
        return emitError() << "expected an axis name but found " << axis;
      if (!used.insert(axis).second)
        return emitError() << "axis " << axis << " occurs twice in one sharding; a tensor is sharded or unreduced over "
                           << "an axis once";
    }
    return success();
  };
  for (Attribute axes : dims)
    if (failed(verifyAxes(axes)))
      return failure();
  return verifyAxes(unreduced);
}

LogicalResult ShardingAttr::verifyEncoding(ArrayRef<int64_t> shape, Type elementType,
                                           function_ref<InFlightDiagnostic()> emitError) const {
  if (static_cast<int64_t>(shape.size()) == getRank())
    return success();
  return emitError() << "sharding of " << getRank() << " dimensions on a tensor of " << shape.size();
}

Attribute ShardingAttr::parse(AsmParser &parser, Type) {
  SMLoc loc = parser.getCurrentLocation();
  FlatSymbolRefAttr mesh;
  SmallVector<Attribute> dims;
  auto parseDim = [&]() -> ParseResult {
    FailureOr<ArrayAttr> axes = parseAxes(parser);
    if (failed(axes))
      return failure();
    dims.push_back(*axes);
    return success();
  };
  if (parser.parseLess() || parser.parseAttribute(mesh) || parser.parseComma() ||
      parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseDim))
    return {};
  ArrayAttr unreduced = ArrayAttr::get(parser.getContext(), {});
  ReductionKind kind = ReductionKind::sum;
  if (succeeded(parser.parseOptionalComma())) {
    if (parser.parseKeyword("unreduced") || parser.parseEqual())
      return {};
    SMLoc kindLoc = parser.getCurrentLocation();
    StringRef keyword;
    if (parser.parseKeyword(&keyword))
      return {};
    std::optional<ReductionKind> parsedKind = symbolizeReductionKind(keyword);
    if (!parsedKind) {
      parser.emitError(kindLoc, "expected a reduction (sum, max, min) but found '") << keyword << "'";
      return {};
    }
    FailureOr<ArrayAttr> axes = parseAxes(parser);
    if (failed(axes))
      return {};
    if (axes->empty()) {
      parser.emitError(loc, "expected an axis after 'unreduced'; leave the clause out where nothing is unreduced");
      return {};
    }
    kind = *parsedKind;
    unreduced = *axes;
  }
  if (parser.parseGreater())
    return {};
  return getChecked([&] { return parser.emitError(loc); }, parser.getContext(), mesh,
                    ArrayAttr::get(parser.getContext(), dims), unreduced, kind);
}

void ShardingAttr::print(AsmPrinter &printer) const {
  printer << '<' << getMesh() << ", [";
  llvm::interleaveComma(getDims(), printer, [&](Attribute axes) { printAxes(printer, cast<ArrayAttr>(axes)); });
  printer << ']';
  if (isUnreduced()) {
    printer << ", unreduced = " << stringifyReductionKind(getKind()) << ' ';
    printAxes(printer, getUnreduced());
  }
  printer << '>';
}
