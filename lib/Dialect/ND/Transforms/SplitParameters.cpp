//===- SplitParameters.cpp - One argument for each part of a weight -------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "FusedProduct.h"
#include "nd/Dialect/ND/IR/Names.h"
#include "nd/Dialect/ND/Transforms/Passes.h"

namespace nd {
#define GEN_PASS_DEF_SPLITPARAMETERS
#include "nd/Dialect/ND/Transforms/Passes.h.inc"
} // namespace nd

using namespace mlir;
using namespace nd;

namespace {

/// Puts arguments for the parts of `parameter` behind it, named `name#0`, `name#1`, ...
FailureOr<SmallVector<Value>> addParts(func::FuncOp function, const FusedProduct::Parameter &parameter,
                                       ArrayRef<FusedProduct::Interval> intervals) {
  auto whole = cast<BlockArgument>(parameter.value);
  unsigned index = whole.getArgNumber();
  RankedTensorType type = tensorTypeOf(whole);
  StringRef name = names::argName(function, index);
  Builder builder(function.getContext());
  SmallVector<Value> parts;
  for (auto [number, interval] : llvm::enumerate(intervals)) {
    SmallVector<int64_t> shape(type.getShape());
    shape[parameter.dim] = interval.size();
    NamedAttrList attributes(function.getArgAttrDict(index));
    attributes.set(names::kName, builder.getStringAttr(name + "#" + Twine(number)));
    attributes.set(names::kRank, builder.getI64IntegerAttr(names::userRank(function, index)));
    attributes.set(names::kPart,
                   builder.getDictionaryAttr(
                       {builder.getNamedAttr("name", builder.getStringAttr(name)),
                        builder.getNamedAttr("dim", builder.getI64IntegerAttr(parameter.dim)),
                        builder.getNamedAttr("offset", builder.getI64IntegerAttr(interval.begin)),
                        builder.getNamedAttr("size", builder.getI64IntegerAttr(type.getDimSize(parameter.dim)))}));
    unsigned position = index + 1 + number;
    if (failed(function.insertArgument(position, withShape(type, shape),
                                       attributes.getDictionary(function.getContext()), whole.getLoc())))
      return failure();
    parts.push_back(function.getArgument(position));
  }
  return parts;
}

struct SplitParameters : nd::impl::SplitParametersBase<SplitParameters> {
  void runOnOperation() override {
    func::FuncOp function = getOperation();
    if (function.isExternal())
      return;
    SmallVector<Value> weights;
    for (BlockArgument argument : function.getArguments()) {
      unsigned index = argument.getArgNumber();
      if (names::argKind(function, index) == names::kind::kWeight && !function.getArgAttr(index, names::kPart))
        weights.push_back(argument);
    }
    auto isWeight = [&](Value value) { return llvm::is_contained(weights, value); };
    SmallVector<Value> done;
    for (Value weight : weights)
      if (std::optional<FusedProduct> product = FusedProduct::match(weight, isWeight))
        if (failed(split(function, *product, done)))
          return signalPassFailure();
    llvm::BitVector erased(function.getNumArguments());
    for (Value value : done)
      erased.set(cast<BlockArgument>(value).getArgNumber());
    if (failed(function.eraseArguments(erased)))
      signalPassFailure();
  }

  /// Appends the arguments that have no readers any more to `done`.
  static LogicalResult split(func::FuncOp function, FusedProduct &product, SmallVectorImpl<Value> &done) {
    SmallVector<SmallVector<Value>> parts;
    for (const FusedProduct::Parameter &parameter : product.getParameters()) {
      FailureOr<SmallVector<Value>> added = addParts(function, parameter, product.getIntervals());
      if (failed(added))
        return failure();
      parts.push_back(std::move(*added));
      done.push_back(parameter.value);
    }
    product.rewrite(parts);
    return success();
  }
};

} // namespace
