//===- Locations.h - Locations as people read them --------------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_SUPPORT_LOCATIONS_H
#define ND_SUPPORT_LOCATIONS_H

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Location.h"

#include <string>

namespace nd {

/// `model.layers.0.mlp (modeling_llama.py:164)`: names, then the file without its folder. Empty where nothing is known.
std::string describeLocation(mlir::Location location);

/// `error`, `warning`, `note` or `remark`.
llvm::StringRef severityName(mlir::DiagnosticSeverity severity);

} // namespace nd

#endif // ND_SUPPORT_LOCATIONS_H
