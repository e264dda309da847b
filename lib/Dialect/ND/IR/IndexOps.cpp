//===- IndexOps.cpp - Index operations: verifiers and folders ---===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "nd/Dialect/ND/IR/ND.h"

using namespace mlir;
using namespace nd;

#define GET_OP_CLASSES
#include "nd/Dialect/ND/IR/NDIndexOps.cpp.inc"

LogicalResult TakeOp::verify() { return success(); }

LogicalResult ScatterAddOp::verify() { return success(); }

LogicalResult TakeAlongOp::verify() { return success(); }

LogicalResult ScatterAddAlongOp::verify() { return success(); }
