//===- Pipeline.h - From the global step to a rank's program ----*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_SHARDING_PIPELINE_H
#define ND_SHARDING_PIPELINE_H

#include "mlir/Pass/PassManager.h"
#include "nd/Sharding/Options.h"

namespace nd {

/// Takes the global step, leaves the program of one rank: annotate, propagate, insert reshards, partition, combine,
/// with the state verifier after each.
void buildShardingPipeline(mlir::OpPassManager &pm, const ShardingOptions &options);

} // namespace nd

#endif // ND_SHARDING_PIPELINE_H
