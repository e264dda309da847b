//===- KeyHeadCopies.h - kv heads that ranks share irregularly --*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// kv heads that neither divide the tensor axis nor are divided by it (KeyHeads.h). Every tensor with kv heads gets the
// slots of all ranks in their place, and attention a `kv_map` from query heads to slots: the program then computes with
// copies as if they were heads of their own, and the tensor axis divides all of it. What a copy's gradient lacks, other
// copies have:
//
//   %sum = nd.sum_copies %grad                       the logical heads' gradient; partial over the tensor axis
//   %0 = arith.mulf %sum, %sum                       the norm counts each logical element once
//   %all = nd.make_copies %sum                       every copy gets the whole gradient, so copies stay equal
//   %w, ... = nd.adamw %weight, %all, ...
//
// The program may do so only where copies are used as such: attention's gradient, and what follows from it linearly, is
// a part of a sum over copies, everything else the same for all copies. A sum over heads is right for a part alone.
// Where an operation does otherwise (a norm over all kv heads), heads are padded as other dimensions are.
//
//===----------------------------------------------------------------------===//

#ifndef ND_LIB_SHARDING_PLAN_KEYHEADCOPIES_H
#define ND_LIB_SHARDING_PLAN_KEYHEADCOPIES_H

#include "Program.h"

namespace nd {

/// Gives kv heads, and query heads with their padding, the sizes that `ranks` along the tensor axes divide, and
/// arguments and results that have kv heads `nd.copies` with a row for each of these ranks.
llvm::LogicalResult expandKeyHeads(Program &program, int64_t ranks);

/// Sums up the gradients of copies, behind the plan of arguments and results: `nd.copies` gets a row for each shard.
llvm::LogicalResult sumKeyHeadCopies(Program &program);

} // namespace nd

#endif // ND_LIB_SHARDING_PLAN_KEYHEADCOPIES_H
