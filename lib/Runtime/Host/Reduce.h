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

/// out[i] = ((in[0][i] + in[1][i]) + ...) over `parts` operands: the order is that of the operands, for every element,
/// whatever the threads or the chunk. bf16 is summed in f32 and rounded once. `out` may be one of the operands.
void reduceParts(int32_t dtype, int32_t reduction, const char *const *in, int parts, char *out, int64_t count);

} // namespace nd::rt

#endif // ND_LIB_RUNTIME_HOST_REDUCE_H
