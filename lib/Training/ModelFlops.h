//===- ModelFlops.h - What a model costs by its definition ------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_LIB_TRAINING_MODELFLOPS_H
#define ND_LIB_TRAINING_MODELFLOPS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace nd {

/// FLOPs of forward and backward for each of `tokens` tokens, as published figures count them: 6 for each
/// multiplication of a product, full attention, without recomputation. A parameter that no product reads counts 6 for
/// each element, unless it is a table that is only looked up. For a transformer this is 6 N + 12 L h s.
int64_t flopsPerToken(mlir::func::FuncOp forward, int64_t tokens);

} // namespace nd

#endif // ND_LIB_TRAINING_MODELFLOPS_H
