//===- Names.cpp - Attributes of functions, arguments, results ------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "nd/Dialect/ND/IR/Names.h"

using namespace mlir;
using namespace nd;

namespace {

StringRef textOf(Attribute attribute) {
  auto text = dyn_cast_or_null<StringAttr>(attribute);
  return text ? text.getValue() : StringRef();
}

} // namespace

StringRef names::argKind(func::FuncOp function, unsigned index) { return textOf(function.getArgAttr(index, kKind)); }
StringRef names::argName(func::FuncOp function, unsigned index) { return textOf(function.getArgAttr(index, kName)); }
StringRef names::userName(func::FuncOp function, unsigned index) {
  auto part = function.getArgAttrOfType<DictionaryAttr>(index, kPart);
  auto whole = part ? part.getAs<StringAttr>("name") : StringAttr();
  return whole ? whole.getValue() : argName(function, index);
}

SmallVector<StringRef> names::userNames(func::FuncOp function, unsigned index) {
  SmallVector<StringRef> all = {argName(function, index), userName(function, index)};
  if (auto aliases = function.getArgAttrOfType<ArrayAttr>(index, kAliases))
    for (auto alias : aliases.getAsRange<StringAttr>())
      all.push_back(alias.getValue());
  return all;
}

StringRef names::resultKind(func::FuncOp function, unsigned index) {
  return textOf(function.getResultAttr(index, kKind));
}
StringRef names::resultName(func::FuncOp function, unsigned index) {
  return textOf(function.getResultAttr(index, kName));
}

void names::setArg(func::FuncOp function, unsigned index, StringRef kind, StringRef name) {
  function.setArgAttr(index, kKind, StringAttr::get(function.getContext(), kind));
  function.setArgAttr(index, kName, StringAttr::get(function.getContext(), name));
}

void names::setResult(func::FuncOp function, unsigned index, StringRef kind, StringRef name) {
  function.setResultAttr(index, kKind, StringAttr::get(function.getContext(), kind));
  function.setResultAttr(index, kName, StringAttr::get(function.getContext(), name));
}

bool names::isTrainableWeight(func::FuncOp function, unsigned index) {
  if (argKind(function, index) != kind::kWeight)
    return false;
  auto trainable = function.getArgAttrOfType<BoolAttr>(index, kTrainable);
  return !trainable || trainable.getValue();
}

std::optional<int64_t> names::argInt(func::FuncOp function, unsigned index, StringRef attribute) {
  if (auto value = function.getArgAttrOfType<IntegerAttr>(index, attribute))
    return value.getInt();
  return std::nullopt;
}

int64_t names::userRank(func::FuncOp function, unsigned index) {
  if (std::optional<int64_t> rank = argInt(function, index, kRank))
    return *rank;
  auto type = dyn_cast<RankedTensorType>(function.getArgumentTypes()[index]);
  return type ? type.getRank() : 0;
}

std::optional<unsigned> names::findArg(func::FuncOp function, StringRef kind, StringRef name) {
  for (unsigned index : llvm::seq(function.getNumArguments()))
    if (argKind(function, index) == kind && argName(function, index) == name)
      return index;
  return std::nullopt;
}

std::optional<unsigned> names::findResult(func::FuncOp function, StringRef kind, StringRef name) {
  for (unsigned index : llvm::seq(function.getNumResults()))
    if (resultKind(function, index) == kind && resultName(function, index) == name)
      return index;
  return std::nullopt;
}

Attribute names::moduleEntry(ModuleOp module, StringRef dictionary, StringRef key) {
  auto entries = module->getAttrOfType<DictionaryAttr>(dictionary);
  return entries ? entries.get(key) : Attribute();
}

std::optional<int64_t> names::moduleInt(ModuleOp module, StringRef dictionary, StringRef key) {
  if (auto value = dyn_cast_or_null<IntegerAttr>(moduleEntry(module, dictionary, key)))
    return value.getInt();
  return std::nullopt;
}

std::optional<double> names::moduleFloat(ModuleOp module, StringRef dictionary, StringRef key) {
  if (auto value = dyn_cast_or_null<FloatAttr>(moduleEntry(module, dictionary, key)))
    return value.getValueAsDouble();
  return std::nullopt;
}

StringRef names::moduleString(ModuleOp module, StringRef dictionary, StringRef key) {
  return textOf(moduleEntry(module, dictionary, key));
}

void names::setModuleEntry(ModuleOp module, StringRef dictionary, StringRef key, Attribute value) {
  NamedAttrList entries;
  if (auto existing = module->getAttrOfType<DictionaryAttr>(dictionary))
    entries.append(existing.begin(), existing.end());
  entries.set(key, value);
  module->setAttr(dictionary, entries.getDictionary(module.getContext()));
}
