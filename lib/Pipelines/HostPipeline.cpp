//===- HostPipeline.cpp - From a step to buffers in one arena --------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "nd/Pipelines/HostPipeline.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Transforms/Passes.h"
#include "nd/Codegen/Gemm/Passes.h"
#include "nd/Codegen/Kernels/Passes.h"
#include "nd/Codegen/Lowering/Passes.h"
#include "nd/Collectives/Passes.h"
#include "nd/Dialect/ND/Transforms/Passes.h"
#include "nd/Memory/Passes.h"
#include "nd/Schedule/Passes.h"
#include "nd/Sharding/Passes.h"

using namespace mlir;
using namespace nd;

void nd::buildHostPipeline(OpPassManager &pm) {
  pm.addPass(createLowerShardAxes());
  pm.addPass(createFormRepeat());
  pm.addPass(createDecompose());
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  pm.addNestedPass<func::FuncOp>(createNDWidenAttention());
  pm.addNestedPass<func::FuncOp>(createNDFormGemms());
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  pm.addNestedPass<func::FuncOp>(createNDFormKernels());
  // Forming kernels moves computation.
  pm.addPass(createScheduleCollectives());
  pm.addNestedPass<func::FuncOp>(createNDScheduleForMemory());
  pm.addPass(createVerifyFootprint());
  pm.addPass(createNDToRT());
  pm.addNestedPass<rt::ProgramOp>(createRTPlanMemory());
  buildRankProgramVerification(pm);
}

void nd::buildRankProgramVerification(OpPassManager &pm) {
  pm.addPass(createVerifyCollectives());
  pm.addNestedPass<rt::ProgramOp>(createRTVerifyMemory());
  pm.addNestedPass<rt::ProgramOp>(createVerifyGathers());
}
