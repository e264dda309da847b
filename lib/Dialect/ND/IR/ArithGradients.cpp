//===- ArithGradients.cpp - arith and math: gradient rules ----------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "mlir/IR/DialectRegistry.h"
#include "nd/Dialect/ND/IR/ExternalModels.h"

void nd::registerDifferentiableModels(mlir::DialectRegistry &registry) {}
