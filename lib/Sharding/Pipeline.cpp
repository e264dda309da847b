//===- Pipeline.cpp - From the global step to a rank's program ------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "nd/Sharding/Pipeline.h"
#include "mlir/Transforms/Passes.h"
#include "nd/Collectives/Passes.h"
#include "nd/Sharding/Passes.h"

using namespace mlir;
using namespace nd;

void nd::buildShardingPipeline(OpPassManager &pm, const ShardingOptions &options) {
  pm.addPass(createAnnotate(
      {/*shard=*/options.str(), /*ranks=*/0, options.zero, options.keepGathered, options.sequenceParallel}));
  pm.addPass(createPropagateSharding());
  pm.addPass(createInsertReshards());
  pm.addPass(createVerifySharding());
  pm.addPass(createPartition());
  pm.addPass(createVerifySharding());
  pm.addPass(createExpandRingAttention());
  pm.addPass(createCombineCollectives());
  // Constants were copied per use, and products by numbers left broadcasts that nobody reads.
  pm.addPass(createCSEPass());
  pm.addPass(createVerifySharding());
}
