//===- StorageLayout.cpp - How a tensor is stored on ranks ----------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "StorageLayout.h"
#include "mlir/IR/Builders.h"
#include "nd/Dialect/ND/IR/Names.h"

using namespace mlir;
using namespace nd;

namespace {

std::optional<int64_t> integerOf(DictionaryAttr dictionary, StringRef key) {
  auto value = dictionary.getAs<IntegerAttr>(key);
  return value ? std::optional<int64_t>(value.getInt()) : std::nullopt;
}

/// The rows of a table one after the other; false when it is no table of integers.
bool flatten(ArrayAttr table, SmallVectorImpl<int64_t> &units) {
  for (Attribute entry : table) {
    auto row = dyn_cast<ArrayAttr>(entry);
    if (!row || !llvm::all_of(row, llvm::IsaPred<IntegerAttr>))
      return false;
    for (auto unit : row.getAsRange<IntegerAttr>())
      units.push_back(unit.getInt());
  }
  return true;
}

} // namespace

FailureOr<StorageLayout> nd::readStorageLayout(function_ref<Attribute(StringRef)> attribute, const Twine &what,
                                               Location loc) {
  StorageLayout layout;
  auto refuse = [&](StringRef name, StringRef expected) {
    return emitError(loc) << name << " of " << what << " is " << attribute(name) << "; expected " << expected;
  };
  if (Attribute blocks = attribute(names::kBlocks)) {
    layout.blocks = dyn_cast<ArrayAttr>(blocks);
    if (!layout.blocks)
      return refuse(names::kBlocks, "a list of block sizes for each dimension");
  }
  if (Attribute value = attribute(names::kPadValue)) {
    auto integer = dyn_cast<IntegerAttr>(value);
    if (!integer)
      return refuse(names::kPadValue, "an integer");
    layout.padValue = Builder(loc.getContext()).getI64IntegerAttr(integer.getInt());
  }

  Attribute chunks = attribute(names::kChunks), copies = attribute(names::kCopies);
  if (!chunks && !copies)
    return layout;
  if (chunks && copies)
    return emitError(loc) << what << " has both " << names::kChunks << " and " << names::kCopies
                          << "; a dimension is stored in one order";
  StringRef name = chunks ? names::kChunks : names::kCopies;
  auto dictionary = dyn_cast<DictionaryAttr>(chunks ? chunks : copies);
  std::optional<int64_t> dim, size;
  SmallVector<int64_t> units;
  bool known = false;
  if (dictionary) {
    dim = integerOf(dictionary, "dim");
    size = integerOf(dictionary, chunks ? "size" : "unit");
    if (auto order = dictionary.getAs<DenseI64ArrayAttr>("order"); chunks && order) {
      units.assign(order.asArrayRef().begin(), order.asArrayRef().end());
      known = true;
    } else if (auto table = dictionary.getAs<ArrayAttr>("table"); copies && table) {
      known = flatten(table, units);
    }
  }
  if (!dim || *dim < 0 || !size || *size < 1 || !known || units.empty())
    return chunks ? refuse(name, "{dim = 1, order = array<i64: 0, 3, 1, 2>, size = 16}")
                  : refuse(name, "{dim = 0, unit = 64, table = [[0], [0], [1], [1]]}");
  Builder builder(loc.getContext());
  layout.units = builder.getDenseI64ArrayAttr(units);
  layout.unitsDim = builder.getI64IntegerAttr(*dim);
  layout.unitSize = builder.getI64IntegerAttr(*size);
  return layout;
}
