//===- NDOps.td - All operations of the dialect -------------*- tablegen -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_DIALECT_ND_IR_NDOPS_TD
#define ND_DIALECT_ND_IR_NDOPS_TD

include "nd/Dialect/ND/IR/NDAttrs.td"
include "nd/Dialect/ND/IR/NDCollectiveOps.td"
include "nd/Dialect/ND/IR/NDCompositeOps.td"
include "nd/Dialect/ND/IR/NDIndexOps.td"
include "nd/Dialect/ND/IR/NDKernelOps.td"
include "nd/Dialect/ND/IR/NDLoopOps.td"
include "nd/Dialect/ND/IR/NDOptimizerOps.td"
include "nd/Dialect/ND/IR/NDReductionOps.td"
include "nd/Dialect/ND/IR/NDStructuralOps.td"

#endif // ND_DIALECT_ND_IR_NDOPS_TD
