//===- Sidecar.h - model.nd.json: what ONNX cannot say ----------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_LIB_IMPORT_ONNX_SIDECAR_H
#define ND_LIB_IMPORT_ONNX_SIDECAR_H

#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/StringMap.h"
#include <map>
#include <optional>
#include <string>

namespace nd::onnx {

/// The sidecar beside a model, checked for types and ranges, not yet against the graph.
struct Sidecar {
  struct Parameter {
    llvm::SmallVector<int64_t> shape;
    std::string dtype;
    /// The type of the stored bytes where it is another one: the loader converts.
    std::string storedDtype;
    int64_t rank = 0;
    bool trainable = true;
    std::optional<int64_t> paddingIdx;
    llvm::SmallVector<std::string> aliases;
    std::string file, key;
  };

  std::string path;
  std::string task;
  std::optional<std::string> weightsDir;
  std::optional<int64_t> ignoreIndex, vocabSize, maxPositions;
  llvm::SmallVector<std::string> blocks, files;
  /// Bounds of the symbols, by name.
  llvm::StringMap<std::pair<int64_t, int64_t>> symbols;
  /// Names of the inputs, with the sizes (or -1 for symbols) of their dimensions.
  std::map<std::string, llvm::SmallVector<int64_t>> inputs;
  std::map<std::string, std::string> outputRoles;
  std::map<std::string, Parameter> parameters;

  /// The sidecar of the model at `modelPath` (model.onnx -> model.nd.json); nothing when there is none.
  static mlir::FailureOr<std::optional<Sidecar>> read(llvm::StringRef modelPath, mlir::MLIRContext *context);
};

} // namespace nd::onnx

#endif // ND_LIB_IMPORT_ONNX_SIDECAR_H
