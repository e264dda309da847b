//===- Copies.h - Sums over copies ------------------------------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// nd.sum_copies and nd.make_copies, apart from the dialect's other operations: only sharding knows them.
//
//===----------------------------------------------------------------------===//

#ifndef ND_DIALECT_ND_IR_COPIES_H
#define ND_DIALECT_ND_IR_COPIES_H

#include "nd/Dialect/ND/IR/ND.h"

#define GET_OP_CLASSES
#include "nd/Dialect/ND/IR/NDCopyOps.h.inc"

#endif // ND_DIALECT_ND_IR_COPIES_H
