//===- PadStorage.h - Parameters that no axis divides -----------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_LIB_SHARDING_PADDING_PADSTORAGE_H
#define ND_LIB_SHARDING_PADDING_PADSTORAGE_H

#include "Analysis.h"
#include "nd/Sharding/Options.h"

namespace nd {

/// Parameters that FSDP stores in shards, none of whose dimensions the axes of these sizes divide, get a longer
/// dimension 0. What computes takes the real rows out of the gathered tensor; gradients get zero rows, and the update
/// runs on padded shards; `allWeights`: all weights are stored in shards, not only master copies and the optimizer's
/// state. `tensorCuts(weight, dim)`: parts that the tensor axes make of a dimension. Returns whether anything changed.
bool padStorage(Program &program, llvm::ArrayRef<int64_t> axisSizes, bool allWeights,
                llvm::function_ref<int64_t(mlir::BlockArgument, int64_t)> tensorCuts);

} // namespace nd

#endif // ND_LIB_SHARDING_PADDING_PADSTORAGE_H
