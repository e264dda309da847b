//===- ND.h - The nd dialect ------------------------------------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_DIALECT_ND_IR_ND_H
#define ND_DIALECT_ND_IR_ND_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/IR/TensorEncoding.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "nd/Dialect/ND/IR/ShardingRule.h"

#include "nd/Dialect/ND/IR/NDDialect.h.inc"
#include "nd/Dialect/ND/IR/NDEnums.h.inc"
#include "nd/Dialect/ND/IR/NDInterfaces.h.inc"
#define GET_ATTRDEF_CLASSES
#include "nd/Dialect/ND/IR/NDAttrs.h.inc"
#define GET_OP_CLASSES
#include "nd/Dialect/ND/IR/NDOps.h.inc"

#endif // ND_DIALECT_ND_IR_ND_H
