//===- Passes.h - Forming kernels -------------------------------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_CODEGEN_KERNELS_PASSES_H
#define ND_CODEGEN_KERNELS_PASSES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"
#include "nd/Dialect/ND/IR/ND.h"

namespace nd {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "nd/Codegen/Kernels/Passes.h.inc"

} // namespace nd

#endif // ND_CODEGEN_KERNELS_PASSES_H
