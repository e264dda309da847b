//===- Passes.h - When collectives start ------------------------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_SCHEDULE_PASSES_H
#define ND_SCHEDULE_PASSES_H

#include "mlir/Pass/Pass.h"
#include "nd/Dialect/RT/IR/RT.h"

namespace nd {

#define GEN_PASS_DECL
#include "nd/Schedule/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "nd/Schedule/Passes.h.inc"

} // namespace nd

#endif // ND_SCHEDULE_PASSES_H
