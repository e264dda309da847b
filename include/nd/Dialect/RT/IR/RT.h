//===- RT.h - The rt dialect ------------------------------------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_DIALECT_RT_IR_RT_H
#define ND_DIALECT_RT_IR_RT_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace nd::rt {

/// Strides and offset of a buffer in elements.
struct Layout {
  llvm::SmallVector<int64_t> strides;
  int64_t offset = 0;
};

/// The layout of a buffer; its type has static strides (`hasStaticStrides`).
Layout getLayout(mlir::MemRefType type);
bool hasStaticStrides(mlir::Type type);
/// Whether the elements lie in row-major order without gaps; dimensions of size 1 may have any stride.
bool isContiguous(mlir::MemRefType type);
/// One past the largest element that the layout reaches, counted from the root's start; 0 when empty.
int64_t getExtent(mlir::MemRefType type);
/// Bytes of one element in memory: booleans take one.
int64_t getElementBytes(mlir::Type elementType);
/// Bytes of a contiguous buffer.
int64_t getBytes(mlir::MemRefType type);
/// What the layout of a buffer counts from: the `rt.tensor`, `rt.buffer` or `rt.constant` result that it is, or is a
/// view of, or the argument of an `rt.repeat` that is one row of such a buffer.
mlir::Value getBase(mlir::Value buffer);
/// The `rt.tensor`, `rt.buffer` or `rt.constant` result that a buffer lies in, through views and rows.
mlir::Value getRoot(mlir::Value buffer);
/// How often an operation runs in a step: the product of the counts of the loops around it.
int64_t getTimes(mlir::Operation *op);

} // namespace nd::rt

#include "nd/Dialect/RT/IR/RTDialect.h.inc"
#include "nd/Dialect/RT/IR/RTEnums.h.inc"
#define GET_TYPEDEF_CLASSES
#include "nd/Dialect/RT/IR/RTTypes.h.inc"
#define GET_ATTRDEF_CLASSES
#include "nd/Dialect/RT/IR/RTAttrs.h.inc"
#define GET_OP_CLASSES
#include "nd/Dialect/RT/IR/RTOps.h.inc"

#endif // ND_DIALECT_RT_IR_RT_H
