//===- NDDocumented.td - What the reference lists -----------*- tablegen -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

include "nd/Dialect/ND/IR/NDCopyOps.td"
include "nd/Dialect/ND/IR/NDOps.td"
