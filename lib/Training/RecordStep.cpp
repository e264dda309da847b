//===- RecordStep.cpp - Record the step's options in the module -----------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

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
    getOperation()->setAttr(nd::names::kStep, dictionary);
  }
};
} // namespace
