//===- ImportModel.h - From an ONNX file to @forward ------------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_IMPORT_ONNX_IMPORTMODEL_H
#define ND_IMPORT_ONNX_IMPORTMODEL_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include <string>

namespace nd::onnx {

struct ImportOptions {
  std::string modelPath;
  /// Sizes of the symbols of the first input's dimensions 0 and 1. Zero: the model must state them itself.
  int64_t batch = 0;
  int64_t seq = 0;
};

/// Reads the model and the sidecar beside it and builds `@forward` of `onnx.node` operations, every size bound. Null
/// after an error.
mlir::OwningOpRef<mlir::ModuleOp> importVerbatim(const ImportOptions &options, mlir::MLIRContext *context);

/// The whole import: verbatim, then the pipeline of `addImportPasses`. Null after an error.
mlir::OwningOpRef<mlir::ModuleOp> importModel(const ImportOptions &options, mlir::MLIRContext *context);

} // namespace nd::onnx

#endif // ND_IMPORT_ONNX_IMPORTMODEL_H
