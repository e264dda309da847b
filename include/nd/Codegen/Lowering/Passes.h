//===- Passes.h - From tensors to buffers -----------------------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_CODEGEN_LOWERING_PASSES_H
#define ND_CODEGEN_LOWERING_PASSES_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "nd/Dialect/ND/IR/ND.h"
#include "nd/Dialect/RT/IR/RT.h"

namespace nd {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "nd/Codegen/Lowering/Passes.h.inc"

} // namespace nd

#endif // ND_CODEGEN_LOWERING_PASSES_H
