//===- Passes.h - Passes of the nd dialect ----------------------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_DIALECT_ND_TRANSFORMS_PASSES_H
#define ND_DIALECT_ND_TRANSFORMS_PASSES_H

#include "mlir/Pass/Pass.h"

namespace nd {

#define GEN_PASS_DECL
#include "nd/Dialect/ND/Transforms/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "nd/Dialect/ND/Transforms/Passes.h.inc"

} // namespace nd

#endif // ND_DIALECT_ND_TRANSFORMS_PASSES_H
