//===- ONNXDialect.cpp - A model's nodes, kept verbatim -------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "mlir/IR/DialectImplementation.h"
#include "nd/Dialect/ONNX/IR/ONNX.h"

using namespace mlir;
using namespace nd::onnx;

#include "nd/Dialect/ONNX/IR/ONNXDialect.cpp.inc"
#define GET_OP_CLASSES
#include "nd/Dialect/ONNX/IR/ONNXOps.cpp.inc"

void ONNXDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "nd/Dialect/ONNX/IR/ONNXOps.cpp.inc"
      >();
}
