//===- Registration.cpp - All dialects and passes of nd -------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "nd/Pipelines/Registration.h"
#include "mlir/InitAllDialects.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"
#include "nd/Codegen/Gemm/Passes.h"
#include "nd/Codegen/Kernels/Passes.h"
#include "nd/Codegen/Lowering/Passes.h"
#include "nd/Collectives/Passes.h"
#include "nd/Dialect/ND/IR/ExternalModels.h"
#include "nd/Dialect/ND/IR/ND.h"
#include "nd/Dialect/ND/Transforms/Passes.h"
#include "nd/Dialect/ONNX/IR/ONNX.h"
#include "nd/Dialect/RT/IR/RT.h"
#include "nd/Import/ONNX/Passes.h"
#include "nd/Memory/Passes.h"
#include "nd/Pipelines/HostPipeline.h"
#include "nd/Schedule/Passes.h"
#include "nd/Sharding/Passes.h"
#include "nd/Training/Passes.h"

void nd::registerDialects(mlir::DialectRegistry &registry) {
  mlir::registerAllDialects(registry);
  registry.insert<nd::NDDialect, nd::onnx::ONNXDialect, nd::rt::RTDialect>();
  registerDifferentiableModels(registry);
  registerShardingModels(registry);
}

void nd::registerPasses() {
  mlir::registerTransformsPasses();
  registerNDCollectivesPasses();
  registerNDGemmPasses();
  registerNDKernelsPasses();
  registerNDLoweringPasses();
  registerNDMemoryPasses();
  onnx::registerNDImportPasses();
  registerNDSchedulePasses();
  registerNDShardingPasses();
  registerNDTrainingPasses();
  registerNDTransformsPasses();
  mlir::PassPipelineRegistration<>("nd-host-pipeline", "Lower a step on local tensors to a planned rank program",
                                   buildHostPipeline);
  mlir::PassPipelineRegistration<>("nd-verify-rank-program", "Check a planned rank program",
                                   buildRankProgramVerification);
}
