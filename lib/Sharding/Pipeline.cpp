//===- Pipeline.cpp - From the global step to a rank's program ------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "nd/Sharding/Pipeline.h"
#include "mlir/Transforms/Passes.h"
#include "nd/Collectives/Passes.h"
#include "nd/Memory/Passes.h"
#include "nd/Schedule/Passes.h"
#include "nd/Sharding/Passes.h"

using namespace mlir;
using namespace nd;

void nd::buildShardingPipeline(OpPassManager &pm, const ShardingOptions &options) {
  AnnotateOptions annotate;
  annotate.shard = options.str();
  annotate.zero = options.zero;
  annotate.annotations.assign(options.annotations.begin(), options.annotations.end());
  annotate.keepGathered = options.keepGathered;
  annotate.fsdpUnit = options.fsdpUnit;
  annotate.cpMode = options.cpMode;
  annotate.sequenceParallel = options.sequenceParallel;
  annotate.systemName = options.system;
  annotate.nodes = options.nodes;
  pm.addPass(createAnnotate(annotate));
  pm.addPass(createPropagateSharding());
  pm.addPass(createInsertReshards());
  pm.addPass(createVerifySharding());
  pm.addPass(createPartition());
  pm.addPass(createVerifySharding());
  pm.addPass(createExpandRingAttention());
  pm.addPass(createVerifySharding());
  pm.addPass(createChunkLoss({options.lossChunk}));
  pm.addPass(createVerifySharding());
  pm.addPass(createCombineCollectives());
  // Constants were copied per use, and products by numbers left broadcasts that nobody reads.
  pm.addPass(createCSEPass());
  pm.addPass(createVerifySharding());
  ScheduleCollectivesOptions schedule;
  schedule.prefetchUnits = options.prefetchUnits;
  schedule.systemName = options.system;
  pm.addPass(createScheduleCollectives(schedule));
  pm.addPass(createVerifySharding());
}
