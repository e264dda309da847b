//===- PadStorage.h - Parameters that no axis divides -----------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_LIB_SHARDING_PADSTORAGE_H
#define ND_LIB_SHARDING_PADSTORAGE_H

#include "Analysis.h"
#include "nd/Sharding/Options.h"

namespace nd {

/// Parameters that FSDP stores in shards, none of whose dimensions the `parts` ranks divide, get a longer dimension 0.
/// What computes takes the real rows out of the gathered tensor; gradients get zero rows, and the update runs on padded
/// shards. `tensorParts` of a weight is how often the tensor axes cut its dimension 0, and `tensorCuts(weight, dim)`
/// the same of any dimension. Returns whether anything changed.
bool padStorage(Program &program, int64_t parts, bool weightsToo,
                llvm::function_ref<int64_t(mlir::BlockArgument, int64_t)> tensorCuts);

} // namespace nd

#endif // ND_LIB_SHARDING_PADSTORAGE_H
