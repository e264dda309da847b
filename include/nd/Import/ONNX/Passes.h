//===- Passes.h - Passes of the import --------------------------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_IMPORT_ONNX_PASSES_H
#define ND_IMPORT_ONNX_PASSES_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Pass/Pass.h"
#include "nd/Dialect/ND/IR/ND.h"

namespace nd::onnx {

#define GEN_PASS_DECL
#include "nd/Import/ONNX/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "nd/Import/ONNX/Passes.h.inc"

/// Verbatim nodes to a finished model: convert, clean up, recover composites, finish.
void addImportPasses(mlir::OpPassManager &pm);

} // namespace nd::onnx

#endif // ND_IMPORT_ONNX_PASSES_H
