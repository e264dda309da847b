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
#include "nd/Dialect/ND/IR/Names.h"
#include "llvm/ADT/StringExtras.h"
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

/// What docs/architecture.md says of the attributes of arguments and results: a misspelt kind would train on other
/// data.
static LogicalResult verifyTensorAttr(Operation *op, NamedAttribute attr, ArrayRef<StringRef> kinds, StringRef where,
                                      unsigned number) {
  auto fail = [&](const Twine &expected) {
    return op->emitOpError() << where << " " << number << ": attribute " << attr.getName() << " = " << attr.getValue()
                             << ", expected " << expected;
  };
  StringRef name = attr.getName().getValue();
  if (name == names::kKind) {
    auto kind = dyn_cast<StringAttr>(attr.getValue());
    if (!kind || !llvm::is_contained(kinds, kind.getValue()))
      return fail("one of " + llvm::join(kinds, ", "));
  } else if (name == names::kName) {
    if (!isa<StringAttr>(attr.getValue()))
      return fail("a string");
  } else if (name == names::kTrainable) {
    if (!isa<BoolAttr>(attr.getValue()))
      return fail("true or false");
  } else if (name == names::kRank || name == names::kPaddingIdx || name == names::kBound) {
    auto number = dyn_cast<IntegerAttr>(attr.getValue());
    if (!number || number.getValue().isNegative())
      return fail("an integer that is not negative");
  }
  return success();
}

LogicalResult NDDialect::verifyRegionArgAttribute(Operation *op, unsigned, unsigned index, NamedAttribute attr) {
  static const StringRef kinds[] = {names::kind::kInput,    names::kind::kWeight,   names::kind::kExpAvg,
                                    names::kind::kExpAvgSq, names::kind::kMomentum, names::kind::kScalar};
  return verifyTensorAttr(op, attr, kinds, "argument", index);
}

LogicalResult NDDialect::verifyRegionResultAttribute(Operation *op, unsigned, unsigned index, NamedAttribute attr) {
  static const StringRef kinds[] = {names::kind::kLogits,  names::kind::kLossSum, names::kind::kLossCount,
                                    names::kind::kOutput,  names::kind::kMetric,  names::kind::kGradient,
                                    names::kind::kWeight,  names::kind::kExpAvg,  names::kind::kExpAvgSq,
                                    names::kind::kMomentum};
  return verifyTensorAttr(op, attr, kinds, "result", index);
}

Operation *NDDialect::materializeConstant(OpBuilder &builder, Attribute value, Type type, Location loc) {
  return arith::ConstantOp::materialize(builder, value, type, loc);
}

void NDDialect::getCanonicalizationPatterns(RewritePatternSet &patterns) const { populateAdditionPatterns(patterns); }
