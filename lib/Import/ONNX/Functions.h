//===- Functions.h - Inlines a model's local functions ----------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_LIB_IMPORT_ONNX_FUNCTIONS_H
#define ND_LIB_IMPORT_ONNX_FUNCTIONS_H

#include "ModelFile.h"

namespace nd::onnx {

/// A node and the version of the operator set that defines it.
struct VersionedNode {
  wire::NodeProto proto;
  int64_t version;
};

/// The graph's nodes in order, calls of local functions replaced by their bodies. Consumes the graph's nodes.
mlir::FailureOr<std::vector<VersionedNode>> flattenNodes(ModelFile &file);

} // namespace nd::onnx

#endif // ND_LIB_IMPORT_ONNX_FUNCTIONS_H
