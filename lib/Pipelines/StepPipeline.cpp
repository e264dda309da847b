//===- StepPipeline.cpp - From a model to its training step ---------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "nd/Pipelines/StepPipeline.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/Transforms/Passes.h"
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

void addTraining(OpPassManager &pm, const StepOptions &options) {
  pm.addPass(createRecordStep({recordOf(options)}));
  pm.addPass(createAddLoss());
  addCleanUp(pm);
  pm.addPass(createBuildBackward());
  addCleanUp(pm);
  pm.addPass(createRecompute());
  addOptimizer(pm, options);
  addCleanUp(pm);
}

void addSharding(OpPassManager &pm, const StepOptions &options) {
  ShardingOptions sharding = llvm::cantFail(ShardingOptions::parse(options.shard, options.ranks));
  sharding.zero = options.zero;
  sharding.cpMode = options.cpMode;
  sharding.keepGathered = options.keepGathered;
  sharding.sequenceParallel = options.sequenceParallel;
  buildShardingPipeline(pm, sharding);
}

} // namespace

void nd::buildStepPipeline(OpPassManager &pm, const StepOptions &options) {
  addCleanUp(pm);
  if (!options.forwardOnly)
    addTraining(pm, options);
  // Without a mesh the program is that of one rank as it is.
  if (!options.shard.empty() || options.ranks > 1)
    addSharding(pm, options);
}
