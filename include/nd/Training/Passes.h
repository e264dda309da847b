//===- Passes.h - From a model to its training step -------------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_TRAINING_PASSES_H
#define ND_TRAINING_PASSES_H

#include "mlir/Pass/Pass.h"

namespace nd {

#define GEN_PASS_DECL
#include "nd/Training/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "nd/Training/Passes.h.inc"

} // namespace nd

#endif // ND_TRAINING_PASSES_H
