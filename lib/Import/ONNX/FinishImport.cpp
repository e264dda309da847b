//===- FinishImport.cpp - nd-finish-import --------------------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "nd/Dialect/ND/IR/Names.h"
#include "nd/Import/ONNX/Passes.h"

namespace nd::onnx {
#define GEN_PASS_DEF_NDFINISHIMPORT
#include "nd/Import/ONNX/Passes.h.inc"
} // namespace nd::onnx

using namespace mlir;
using namespace nd;
using namespace nd::onnx;

namespace {

void dropUnusedWeights(func::FuncOp function) {
  llvm::BitVector unused(function.getNumArguments());
  SmallVector<StringRef> named;
  for (BlockArgument argument : function.getArguments()) {
    unsigned index = argument.getArgNumber();
    if (names::argKind(function, index) != names::kind::kWeight || !argument.use_empty())
      continue;
    unused.set(index);
    named.push_back(names::argName(function, index));
  }
  if (named.empty())
    return;
  InFlightDiagnostic warning = emitWarning(function.getLoc());
  warning << named.size() << (named.size() == 1 ? " parameter is" : " parameters are")
          << " not used by the graph and left out: ";
  llvm::interleaveComma(ArrayRef(named).take_front(5), warning);
  if (named.size() > 5)
    warning << ", ...";
  (void)function.eraseArguments(unused);
}

/// The tables that a value reaches as indices, through operations that only move elements.
void collectTables(Value indices, SmallVectorImpl<TakeOp> &takes, unsigned depth) {
  if (depth > 32)
    return;
  for (Operation *user : indices.getUsers()) {
    if (auto take = dyn_cast<TakeOp>(user)) {
      if (take.getIndices() == indices)
        takes.push_back(take);
    } else if (isa<ReshapeOp, BroadcastOp, TransposeOp, SliceOp>(user)) {
      collectTables(user->getResult(0), takes, depth + 1);
    }
  }
}

void boundInput(func::FuncOp function, BlockArgument input) {
  SmallVector<TakeOp> takes;
  collectTables(input, takes, 0);
  std::optional<int64_t> bound;
  for (TakeOp take : takes) {
    int64_t rows = take.getTable().getType().getDimSize(0);
    bound = std::min(bound.value_or(rows), rows);
  }
  if (bound)
    function.setArgAttr(input.getArgNumber(), names::kBound, Builder(function.getContext()).getI64IntegerAttr(*bound));
}

struct NDFinishImportPass : onnx::impl::NDFinishImportBase<NDFinishImportPass> {
  using NDFinishImportBase::NDFinishImportBase;

  void runOnOperation() override {
    for (func::FuncOp function : getOperation().getOps<func::FuncOp>()) {
      dropUnusedWeights(function);
      for (BlockArgument argument : function.getArguments()) {
        unsigned index = argument.getArgNumber();
        if (names::argKind(function, index) == names::kind::kInput && tensorElement(argument).isInteger())
          boundInput(function, argument);
        if (auto padding = names::argInt(function, index, names::kPaddingIdx))
          for (Operation *user : argument.getUsers())
            if (auto take = dyn_cast<TakeOp>(user); take && take.getTable() == argument)
              take.setPaddingIdx(*padding);
      }
      if (failed(checkVocabulary(function)))
        return signalPassFailure();
    }
  }

private:
  static Type tensorElement(Value value) { return cast<RankedTensorType>(value.getType()).getElementType(); }

  /// Foreign models have no vocabulary stated: it is the width of their logits.
  LogicalResult checkVocabulary(func::FuncOp function) {
    ModuleOp module = getOperation();
    for (unsigned i = 0; i < function.getNumResults(); ++i) {
      if (names::resultKind(function, i) != names::kind::kLogits)
        continue;
      auto type = cast<RankedTensorType>(function.getResultTypes()[i]);
      if (type.getRank() == 0)
        return emitError(function.getLoc()) << "its logits have no dimension of classes; export the model again";
      if (module->hasAttr(names::kModel) && !names::moduleInt(module, names::kModel, "vocab_size"))
        names::setModuleEntry(module, names::kModel, "vocab_size",
                              Builder(module).getI64IntegerAttr(type.getShape().back()));
    }
    return success();
  }
};

} // namespace
