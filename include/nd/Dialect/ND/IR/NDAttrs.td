//===- NDAttrs.td - Meshes and shardings --------------------*- tablegen -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_DIALECT_ND_IR_NDATTRS_TD
#define ND_DIALECT_ND_IR_NDATTRS_TD

include "mlir/IR/AttrTypeBase.td"
include "nd/Dialect/ND/IR/NDDialect.td"
include "nd/Dialect/ND/IR/NDEnums.td"

#endif // ND_DIALECT_ND_IR_NDATTRS_TD
