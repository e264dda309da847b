//===- Reduce.h - Sums over ranks in a fixed order --------------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_LIB_RUNTIME_HOST_REDUCE_H
#define ND_LIB_RUNTIME_HOST_REDUCE_H

#include "nd/Runtime/Core/ABI.h"

namespace nd::rt {

/// Whether elements of a type can be reduced between ranks.
bool canReduce(int32_t dtype, int32_t reduction);

/// Each of the `targets` becomes ((in[0][i] + in[1][i]) + ...) over `parts` operands: the order is that of the
/// operands, for every element, whatever the threads or the chunk. bf16 is summed in f32 and rounded once. Targets may
/// be operands.
void reduceParts(int32_t dtype, int32_t reduction, const char *const *in, int parts, char *const *out, int targets,
                 int64_t count, bool streamed);

/// Copies; `streamed`: past the caches, where the row is long enough. An _mm_sfence() then has to follow.
void copyRow(char *to, const char *from, int64_t bytes, bool streamed);

} // namespace nd::rt

#endif // ND_LIB_RUNTIME_HOST_REDUCE_H
