//===- StepPipeline.cpp - From a model to its training step ---------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "nd/Pipelines/StepPipeline.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/Transforms/Passes.h"
#include "nd/Dialect/ND/Transforms/Passes.h"
#include "nd/Memory/Passes.h"
#include "nd/Sharding/Pipeline.h"
#include "nd/Training/Passes.h"

using namespace mlir;
using namespace nd;

namespace {

/// `nd.step` as text without its braces, as the pass takes it.
std::string recordOf(const StepOptions &options) {
  MLIRContext context(MLIRContext::Threading::DISABLED);
  std::string text;
  llvm::raw_string_ostream(text) << options.getAttribute(&context);
  return StringRef(text).drop_front().drop_back().str();
}

void addOptimizer(OpPassManager &pm, const StepOptions &options) {
  AddOptimizerOptions passOptions;
  passOptions.optimizer = stringify(options.optimizer).str();
  passOptions.beta1 = options.beta1;
  passOptions.beta2 = options.beta2;
  passOptions.eps = options.eps;
  passOptions.weightDecay = options.weightDecay;
  passOptions.momentum = options.momentum;
  passOptions.clip = options.clip;
  passOptions.decayAll = options.decayAll;
  passOptions.noDecay.assign(options.noDecay.begin(), options.noDecay.end());
  passOptions.keepGradients = options.keepGradients;
  pm.addPass(createAddOptimizer(passOptions));
}

void addCleanUp(OpPassManager &pm) {
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
}

/// Whether an axis shards the outputs of products: the parts of fused parameters then have to be parameters.
bool shardsInsideParameters(const ShardingOptions &mesh) {
  return llvm::any_of(mesh.axes,
                      [](const ShardingOptions::Axis &axis) { return axis.role == AxisRole::tensor && axis.size > 1; });
}

void addTraining(OpPassManager &pm, const StepOptions &options) {
  pm.addPass(createRecordStep({recordOf(options)}));
  pm.addPass(createAddLoss());
  pm.addPass(createAddMicrobatches({options.microbatches}));
  addCleanUp(pm);
  pm.addPass(createBuildBackward());
  addCleanUp(pm);
  pm.addPass(createRecompute());
  addOptimizer(pm, options);
  addCleanUp(pm);
}

/// The mesh, with the options of how it is used; one rank where none is given.
ShardingOptions shardingOf(const StepOptions &options, bool isSharded) {
  if (!isSharded)
    return {};
  ShardingOptions sharding = llvm::cantFail(ShardingOptions::parse(options.shard, options.ranks));
  sharding.zero = options.zero;
  sharding.annotations = options.annotations;
  sharding.cpMode = options.cpMode;
  sharding.keepGathered = options.keepGathered;
  sharding.fsdpUnit = options.fsdpUnit;
  sharding.sequenceParallel = options.sequenceParallel;
  sharding.lossChunk = options.forwardOnly ? "off" : options.lossChunk;
  sharding.prefetchUnits = options.prefetchUnits;
  sharding.system = options.system;
  sharding.nodes = options.nodes;
  return sharding;
}

} // namespace

void nd::buildStepPipeline(OpPassManager &pm, const StepOptions &options) {
  // Without a mesh the program is that of one rank as it is.
  bool isSharded = !options.shard.empty() || options.ranks > 1;
  ShardingOptions sharding = shardingOf(options, isSharded);
  addCleanUp(pm);
  pm.addNestedPass<func::FuncOp>(createUnmergeDimensions());
  addCleanUp(pm);
  if (shardsInsideParameters(sharding)) {
    pm.addNestedPass<func::FuncOp>(createSplitParameters());
    addCleanUp(pm);
  }
  if (options.dtype == "bf16") {
    pm.addPass(createMixedPrecision());
    addCleanUp(pm);
  }
  if (!options.forwardOnly)
    addTraining(pm, options);
  if (isSharded)
    buildShardingPipeline(pm, sharding);
  else if (!options.forwardOnly)
    pm.addPass(createChunkLoss({options.lossChunk}));
}
