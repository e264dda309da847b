//===- Staging.h - Partial sums on their way to another node ----*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_LIB_MEMORY_STAGING_H
#define ND_LIB_MEMORY_STAGING_H

#include "nd/Dialect/RT/IR/RT.h"

namespace nd {

/// Bytes that the transport needs for partial sums: a reduce-scatter over several nodes with several ranks of its group
/// on each sums up inside the nodes first, piece by piece, and a sum has no place in its operands. One region serves
/// all, since a rank moves one collective at a time.
int64_t getStagingBytes(rt::ProgramOp program);

} // namespace nd

#endif // ND_LIB_MEMORY_STAGING_H
