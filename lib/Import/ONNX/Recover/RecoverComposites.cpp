//===- RecoverComposites.cpp - nd-recover-composites ----------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Match.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "nd/Import/ONNX/Passes.h"

namespace nd::onnx {
#define GEN_PASS_DEF_NDRECOVERCOMPOSITES
#include "nd/Import/ONNX/Passes.h.inc"
} // namespace nd::onnx

using namespace mlir;
using namespace nd::onnx;

namespace {

struct NDRecoverCompositesPass : nd::onnx::impl::NDRecoverCompositesBase<NDRecoverCompositesPass> {
  using NDRecoverCompositesBase::NDRecoverCompositesBase;

  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    // Composites show behind reshapes of reshapes and the like, which canonicalization removes on the way.
    for (Dialect *dialect : getContext().getLoadedDialects())
      dialect->getCanonicalizationPatterns(patterns);
    for (RegisteredOperationName name : getContext().getRegisteredOperations())
      name.getCanonicalizationPatterns(patterns, &getContext());
    populateAttentionPatterns(patterns);
    populateCrossEntropyPatterns(patterns);
    populateMaskPatterns(patterns);
    populateRmsNormPatterns(patterns);
    populateRopePatterns(patterns);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
