//===- Locations.h - Where in the user's model a node comes from -*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_LIB_IMPORT_ONNX_LOCATIONS_H
#define ND_LIB_IMPORT_ONNX_LOCATIONS_H

#include "OnnxWire.pb.h"
#include "mlir/IR/Location.h"

namespace nd::onnx {

/// The module path (or the node's name) around the innermost Python line:
/// loc("model.layers.0"("modeling_llama.py":111:0)).
mlir::Location locationOf(const onnx_wire::NodeProto &node, mlir::MLIRContext *context);

/// The part of a Python file's path that does not depend on the machine: from its package on, or the file's name.
llvm::StringRef packageRelative(llvm::StringRef path);

/// "module.path (file.py:12)", for messages; empty when the location says nothing.
std::string describe(mlir::Location loc);

} // namespace nd::onnx

#endif // ND_LIB_IMPORT_ONNX_LOCATIONS_H
