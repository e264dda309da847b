//===- Diagnostics.h - Errors as a person reads them ------------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_IMPORT_ONNX_DIAGNOSTICS_H
#define ND_IMPORT_ONNX_DIAGNOSTICS_H

#include "mlir/IR/Diagnostics.h"
#include <string>

namespace nd::onnx {

/// While it lives, diagnostics go to standard error as `tool: error: message` with the module path and Python line
/// below: what caused them is a node of the user's model, of which there is no source text to show.
class PlainDiagnostics : public mlir::ScopedDiagnosticHandler {
public:
  PlainDiagnostics(mlir::MLIRContext *context, llvm::StringRef tool);
};

} // namespace nd::onnx

#endif // ND_IMPORT_ONNX_DIAGNOSTICS_H
