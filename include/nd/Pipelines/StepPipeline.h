//===- StepPipeline.h - From a model to its training step -------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_PIPELINES_STEPPIPELINE_H
#define ND_PIPELINES_STEPPIPELINE_H

#include "mlir/Pass/PassManager.h"
#include "nd/Pipelines/StepOptions.h"

namespace nd {

/// Turns a module with `@forward` into one with `@step`: loss, backward, optimizer, then sharding when a mesh is given.
/// With `forwardOnly` the function stays `@forward`. `pm` runs on modules; `options` have been validated.
void buildStepPipeline(mlir::OpPassManager &pm, const StepOptions &options);

} // namespace nd

#endif // ND_PIPELINES_STEPPIPELINE_H
