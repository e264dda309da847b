//===- PropagateSharding.cpp - Shardings for every value ------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Propagation.h"
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
    Propagation propagation(*program);
    if (failed(propagation.run()))
      return signalPassFailure();
    for (Operation &op : program->getBody().without_terminator()) {
      SmallVector<Attribute> shardings = llvm::map_to_vector(op.getResults(), [&](Value result) -> Attribute {
        return propagation.getMesh().toAttr(propagation.get(result));
      });
      op.setAttr(names::kShardings, ArrayAttr::get(&getContext(), shardings));
    }
  }
};

} // namespace
