//===- PropagateSharding.cpp - Shardings for every value ------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "ReplicatedWork.h"
#include "nd/Dialect/ND/IR/Names.h"
#include "nd/Sharding/Passes.h"

namespace nd {
#define GEN_PASS_DEF_PROPAGATESHARDING
#include "nd/Sharding/Passes.h.inc"
} // namespace nd

using namespace mlir;
using namespace nd;

namespace {

struct PropagateSharding : nd::impl::PropagateShardingBase<PropagateSharding> {
  void runOnOperation() override {
    FailureOr<Program> program = Program::getWithMesh(getOperation());
    if (failed(program))
      return signalPassFailure();
    FailureOr<Analysis> analysis = Analysis::get(*program);
    if (failed(analysis))
      return signalPassFailure();
    Propagation propagation(*program, *analysis);
    if (failed(propagation.run()))
      return signalPassFailure();
    noteReplicatedWork(*program, *analysis, propagation);
    for (const Analysis::Step &step : analysis->getSteps())
      step.op->setAttr(names::kFactorAxes, propagation.getMesh().toLists(propagation.get(step.op)));
  }
};

} // namespace
