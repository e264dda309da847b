//===- OptimizerOps.cpp - Optimizer operations: verifiers and folders ---===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "nd/Dialect/ND/IR/ND.h"

using namespace mlir;
using namespace nd;

#define GET_OP_CLASSES
#include "nd/Dialect/ND/IR/NDOptimizerOps.cpp.inc"

LogicalResult AdamWOp::verify() { return success(); }

LogicalResult SgdOp::verify() { return success(); }
