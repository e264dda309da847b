//===- Parameters.h - Which initializers are parameters ---------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_LIB_IMPORT_ONNX_PARAMETERS_H
#define ND_LIB_IMPORT_ONNX_PARAMETERS_H

#include "Functions.h"
#include "ModelFile.h"
#include "Sidecar.h"

namespace nd::onnx {

/// One parameter: an argument of the function under all the names that the graph or the user's model has for it.
struct Parameter {
  llvm::SmallVector<std::string> graphNames;
  mlir::RankedTensorType type;
  mlir::DictionaryAttr attributes;
};

/// Decides which initializers are parameters, in the file's order. With a sidecar: those it lists, and both must agree.
/// Without: those that torch's signature calls parameters; else float initializers that are stored externally, named
/// like a parameter, or large. Names of the same bytes become one parameter.
mlir::FailureOr<std::vector<Parameter>> selectParameters(const ModelFile &file, const std::optional<Sidecar> &sidecar,
                                                         llvm::ArrayRef<VersionedNode> nodes);

} // namespace nd::onnx

#endif // ND_LIB_IMPORT_ONNX_PARAMETERS_H
