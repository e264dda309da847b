//===- PrintShardingRules.cpp - Rules as remarks --------------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Program.h"
#include "nd/Sharding/Passes.h"

namespace nd {
#define GEN_PASS_DEF_PRINTSHARDINGRULES
#include "nd/Sharding/Passes.h.inc"
} // namespace nd

using namespace mlir;
using namespace nd;

namespace {

struct PrintShardingRules : nd::impl::PrintShardingRulesBase<PrintShardingRules> {
  void runOnOperation() override {
    WalkResult result = getOperation().walk([](Operation *op) {
      if (isa<ModuleOp, func::FuncOp, func::ReturnOp, MeshOp>(op))
        return WalkResult::advance();
      FailureOr<ShardingRule> rule = getShardingRule(op);
      if (failed(rule))
        return WalkResult::interrupt();
      op->emitRemark() << rule->str();
      return WalkResult::advance();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }
};

} // namespace
