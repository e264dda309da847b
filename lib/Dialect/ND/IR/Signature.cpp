//===- Signature.cpp - Many arguments and results at once -----------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "nd/Dialect/ND/IR/Signature.h"
#include "nd/Dialect/ND/IR/Names.h"

using namespace mlir;
using namespace nd;

SignatureIndex::SignatureIndex(func::FuncOp function) {
  // The first of equal names counts.
  for (unsigned index : llvm::seq(function.getNumArguments()))
    arguments.try_emplace({names::argKind(function, index), names::argName(function, index)}, index);
  for (unsigned index : llvm::seq(function.getNumResults()))
    results.try_emplace({names::resultKind(function, index), names::resultName(function, index)}, index);
}

std::optional<unsigned> SignatureIndex::find(const DenseMap<Key, unsigned> &index, StringRef kind, StringRef name) {
  auto it = index.find({kind, name});
  return it == index.end() ? std::nullopt : std::optional<unsigned>(it->second);
}

SignatureAttrs::SignatureAttrs(func::FuncOp function) : function(function) {
  for (unsigned index : llvm::seq(function.getNumArguments()))
    arguments.emplace_back(function.getArgAttrDict(index));
  for (unsigned index : llvm::seq(function.getNumResults()))
    results.emplace_back(function.getResultAttrDict(index));
}

void SignatureAttrs::setArg(unsigned index, StringRef name, Attribute value) {
  value ? void(arguments[index].set(name, value)) : void(arguments[index].erase(name));
  changedArguments = true;
}

void SignatureAttrs::setResult(unsigned index, StringRef name, Attribute value) {
  value ? void(results[index].set(name, value)) : void(results[index].erase(name));
  changedResults = true;
}

void SignatureAttrs::commit() {
  auto dictionaries = [&](ArrayRef<NamedAttrList> lists) {
    return llvm::map_to_vector(lists,
                               [&](const NamedAttrList &list) { return list.getDictionary(function.getContext()); });
  };
  if (changedArguments)
    function.setAllArgAttrs(dictionaries(arguments));
  if (changedResults)
    function.setAllResultAttrs(dictionaries(results));
  changedArguments = changedResults = false;
}
