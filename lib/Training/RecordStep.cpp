//===- RecordStep.cpp - Record the step's options in the module -----------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "ModelFlops.h"
#include "mlir/AsmParser/AsmParser.h"
#include "nd/Dialect/ND/IR/Names.h"
#include "nd/Training/Passes.h"

namespace nd {
#define GEN_PASS_DEF_RECORDSTEP
#include "nd/Training/Passes.h.inc"
} // namespace nd

using namespace mlir;

namespace {
struct RecordStep : nd::impl::RecordStepBase<RecordStep> {
  using RecordStepBase::RecordStepBase;

  void runOnOperation() override {
    auto dictionary = dyn_cast_or_null<DictionaryAttr>(parseAttribute("{" + record + "}", &getContext()));
    if (!dictionary) {
      getOperation().emitError() << "nd-record-step: the record must be entries of a dictionary attribute, got '"
                                 << record << "'";
      return signalPassFailure();
    }
    ModuleOp module = getOperation();
    module->setAttr(nd::names::kStep, dictionary);
    auto forward = module.lookupSymbol<func::FuncOp>(nd::names::kForward);
    std::optional<int64_t> batch = nd::names::moduleInt(module, nd::names::kModel, "batch");
    std::optional<int64_t> sequence = nd::names::moduleInt(module, nd::names::kModel, "seq");
    if (!forward || forward.isExternal() || !batch || !sequence)
      return;
    Builder builder(&getContext());
    nd::names::setModuleEntry(module, nd::names::kModel, "flops_per_token",
                              builder.getI64IntegerAttr(nd::flopsPerToken(forward, *batch * *sequence)));
  }
};
} // namespace
