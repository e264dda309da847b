//===- LaneReductions.h - Reductions of and over lanes ----------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_LIB_CODEGEN_KERNELS_LANEREDUCTIONS_H
#define ND_LIB_CODEGEN_KERNELS_LANEREDUCTIONS_H

#include "NodeEmitter.h"

namespace nd {

/// Lane by lane, of floats, integers or booleans. A sum of floats may be reassociated: its order is the emitter's
/// choice, and the same for every cut into units.
mlir::Value combineLanes(LaneBuilder &b, ReductionKind kind, mlir::Value x, mlir::Value y);
/// What a reduction starts with.
mlir::Value identityLanes(LaneBuilder &b, ReductionKind kind, mlir::Type type);
/// One number of all lanes; of a number itself.
mlir::Value acrossLanes(LaneBuilder &b, ReductionKind kind, mlir::Value vector);

} // namespace nd

#endif // ND_LIB_CODEGEN_KERNELS_LANEREDUCTIONS_H
