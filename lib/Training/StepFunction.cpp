//===- StepFunction.cpp - The function that becomes the step --------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "StepFunction.h"
#include "nd/Dialect/ND/IR/Names.h"

using namespace mlir;
using namespace nd;

FailureOr<func::FuncOp> nd::getForward(ModuleOp module) {
  auto function = module.lookupSymbol<func::FuncOp>(names::kForward);
  if (!function) {
    InFlightDiagnostic error = module.emitError() << "the module has no function @" << names::kForward;
    if (module.lookupSymbol(names::kStepFunction))
      error << "; it holds @" << names::kStepFunction << " and is a training step already";
    else
      error << "; nd-import writes one";
    return error;
  }
  if (function.isExternal() || !function.getBody().hasOneBlock())
    return function.emitOpError() << "must have a body of one block";
  if (!isa<func::ReturnOp>(function.getBody().front().back()))
    return function.emitOpError() << "must end with func.return";
  return function;
}

func::ReturnOp nd::getReturn(func::FuncOp function) {
  return cast<func::ReturnOp>(function.getBody().front().getTerminator());
}

std::optional<unsigned> nd::findResultOfKind(func::FuncOp function, StringRef kind) {
  for (unsigned index : llvm::seq(function.getNumResults()))
    if (names::resultKind(function, index) == kind)
      return index;
  return std::nullopt;
}

void nd::setResults(func::FuncOp function, ArrayRef<StepResult> results) {
  Builder builder(function.getContext());
  SmallVector<Value> values;
  SmallVector<DictionaryAttr> attributes;
  for (const StepResult &result : results) {
    values.push_back(result.value);
    NamedAttrList entries;
    entries.append(names::kKind, builder.getStringAttr(result.kind));
    if (!result.name.empty())
      entries.append(names::kName, builder.getStringAttr(result.name));
    attributes.push_back(entries.getDictionary(function.getContext()));
  }
  getReturn(function)->setOperands(values);
  function.setType(builder.getFunctionType(function.getBody().getArgumentTypes(), ValueRange(values).getTypes()));
  function.setAllResultAttrs(attributes);
}
