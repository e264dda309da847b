//===- Passes.h - From the global step to a rank's program ------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_SHARDING_PASSES_H
#define ND_SHARDING_PASSES_H

#include "mlir/Pass/Pass.h"

namespace nd {

#define GEN_PASS_DECL
#include "nd/Sharding/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "nd/Sharding/Passes.h.inc"

} // namespace nd

#endif // ND_SHARDING_PASSES_H
