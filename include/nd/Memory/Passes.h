//===- Passes.h - Order and place of a step's memory ------------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_MEMORY_PASSES_H
#define ND_MEMORY_PASSES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"
#include "nd/Dialect/RT/IR/RT.h"

namespace nd {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "nd/Memory/Passes.h.inc"

} // namespace nd

#endif // ND_MEMORY_PASSES_H
