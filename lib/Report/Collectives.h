//===- Collectives.h - What collectives say of themselves -------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_LIB_REPORT_COLLECTIVES_H
#define ND_LIB_REPORT_COLLECTIVES_H

#include "nd/Cost/CostModel.h"
#include "nd/Dialect/ND/IR/ND.h"
#include "nd/Dialect/RT/IR/RT.h"

namespace nd {

inline llvm::SmallVector<mlir::Value> sourcesOf(rt::CollectiveStartOp start) { return start.getSources(); }
inline llvm::SmallVector<mlir::Value> targetsOf(rt::CollectiveStartOp start) { return start.getTargets(); }

/// Of the whole tensors on a rank: the sources, of an all-gather the targets.
int64_t payloadBytes(rt::CollectiveStartOp start);
CommKind commKind(rt::CollectiveKind kind);
/// As metrics name the ranks along these axes.
/// An operation on tensors that sends.
bool isCollective(mlir::Operation *op);

} // namespace nd

#endif // ND_LIB_REPORT_COLLECTIVES_H
