//===- Passes.h - What becomes of collectives ------------------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_COLLECTIVES_PASSES_H
#define ND_COLLECTIVES_PASSES_H

#include "mlir/Pass/Pass.h"

namespace nd {

#define GEN_PASS_DECL
#include "nd/Collectives/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "nd/Collectives/Passes.h.inc"

} // namespace nd

#endif // ND_COLLECTIVES_PASSES_H
