//===- JoinPartialSums.h - Partial sums are added first ---------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Where several terms of one sum are partial over the same axes, they are added before they are reduced, and whole
// terms behind the reduction: attention and MLP that read the same input need one reduction instead of two.
//
//   (x + attention) + (mlp + bias)   becomes   (attention + mlp) + x + bias      x, bias whole
//
// Invariants: a sum is taken apart only where it would be whole, and nothing but the sum reads its parts or a partial
// term. A narrow term (bf16) that is reduced before it is widened stays narrow: terms are added in the type in which
// they are reduced. A sum that is rounded on the way to another is rounded no more.
//
//===----------------------------------------------------------------------===//

#ifndef ND_LIB_SHARDING_RESHARD_JOINPARTIALSUMS_H
#define ND_LIB_SHARDING_RESHARD_JOINPARTIALSUMS_H

#include "Reshard/StatePlan.h"

namespace nd {

/// Regroups the sums of a program by the states of `plan`, which then has to be made again. Returns whether it did.
bool joinPartialSums(Program &program, const StatePlan &plan);

} // namespace nd

#endif // ND_LIB_SHARDING_RESHARD_JOINPARTIALSUMS_H
