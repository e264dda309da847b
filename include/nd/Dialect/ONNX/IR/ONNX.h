//===- ONNX.h - A model's nodes, kept verbatim ------------------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_DIALECT_ONNX_IR_ONNX_H
#define ND_DIALECT_ONNX_IR_ONNX_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "nd/Dialect/ONNX/IR/ONNXDialect.h.inc"
#define GET_OP_CLASSES
#include "nd/Dialect/ONNX/IR/ONNXOps.h.inc"

#endif // ND_DIALECT_ONNX_IR_ONNX_H
