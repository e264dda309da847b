//===- KernelOps.cpp - Kernel operations: verifiers and folders ---===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "nd/Dialect/ND/IR/ND.h"

using namespace mlir;
using namespace nd;

#define GET_OP_CLASSES
#include "nd/Dialect/ND/IR/NDKernelOps.cpp.inc"

LogicalResult KernelOp::verify() { return success(); }

LogicalResult GemmOp::verify() { return success(); }
