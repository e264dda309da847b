//===- HostPipeline.h - From a step to buffers in one arena -----*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_PIPELINES_HOSTPIPELINE_H
#define ND_PIPELINES_HOSTPIPELINE_H

namespace mlir {
class OpPassManager;
} // namespace mlir

namespace nd {

/// A module of one function on local tensors becomes a planned rt.program, ready for compileHostProgram.
void buildHostPipeline(mlir::OpPassManager &pm);

/// The checks at its end: no rank waits for ever, nothing is read before it is there, no parameter stays gathered.
void buildRankProgramVerification(mlir::OpPassManager &pm);

} // namespace nd

#endif // ND_PIPELINES_HOSTPIPELINE_H
