//===- NDDialect.cpp - The nd dialect -------------------------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Patterns.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/DialectImplementation.h"
#include "nd/Dialect/ND/IR/ND.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace nd;

#include "nd/Dialect/ND/IR/NDDialect.cpp.inc"
#include "nd/Dialect/ND/IR/NDEnums.cpp.inc"
#include "nd/Dialect/ND/IR/NDInterfaces.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "nd/Dialect/ND/IR/NDAttrs.cpp.inc"

void NDDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "nd/Dialect/ND/IR/NDAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "nd/Dialect/ND/IR/NDOps.cpp.inc"
      >();
}

Operation *NDDialect::materializeConstant(OpBuilder &builder, Attribute value, Type type, Location loc) {
  return arith::ConstantOp::materialize(builder, value, type, loc);
}

void NDDialect::getCanonicalizationPatterns(RewritePatternSet &patterns) const { populateAdditionPatterns(patterns); }
