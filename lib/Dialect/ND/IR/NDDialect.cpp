//===- NDDialect.cpp - The nd dialect -------------------------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Patterns.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/DialectImplementation.h"
#include "nd/Dialect/ND/IR/Copies.h"
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
  addOperations<
#define GET_OP_LIST
#include "nd/Dialect/ND/IR/NDCopyOps.cpp.inc"
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
  static const StringRef kinds[] = {names::kind::kInput,     names::kind::kWeight,   names::kind::kExpAvg,
                                    names::kind::kExpAvgSq,  names::kind::kMomentum, names::kind::kScalar,
                                    names::kind::kCoordinate};
  return verifyTensorAttr(op, attr, kinds, "argument", index);
}

LogicalResult NDDialect::verifyRegionResultAttribute(Operation *op, unsigned, unsigned index, NamedAttribute attr) {
  static const StringRef kinds[] = {names::kind::kLogits,  names::kind::kLossSum, names::kind::kLossCount,
                                    names::kind::kOutput,  names::kind::kMetric,  names::kind::kGradient,
                                    names::kind::kWeight,  names::kind::kExpAvg,  names::kind::kExpAvgSq,
                                    names::kind::kMomentum};
  return verifyTensorAttr(op, attr, kinds, "result", index);
}

namespace {

/// What an entry of the module's `nd.model` or `nd.step` must be.
enum class Entry { Text, Texts, Integer, Count, Size, Number };

StringRef expectationOf(Entry entry) {
  switch (entry) {
  case Entry::Text:
    return "a string";
  case Entry::Texts:
    return "a list of strings";
  case Entry::Integer:
    return "an integer";
  case Entry::Count:
    return "an integer that is not negative";
  case Entry::Size:
    return "a positive integer";
  case Entry::Number:
    return "a finite number that is not negative";
  }
  llvm_unreachable("all entries are listed");
}

bool fits(Entry entry, Attribute value) {
  auto integer = dyn_cast<IntegerAttr>(value);
  bool isInteger = integer && integer.getType().isSignlessInteger(64);
  switch (entry) {
  case Entry::Text:
    return isa<StringAttr>(value);
  case Entry::Texts:
    return isa<ArrayAttr>(value) &&
           llvm::all_of(cast<ArrayAttr>(value), [](Attribute text) { return isa<StringAttr>(text); });
  case Entry::Integer:
    return isInteger;
  case Entry::Count:
    return isInteger && integer.getInt() >= 0;
  case Entry::Size:
    return isInteger && integer.getInt() > 0;
  case Entry::Number: {
    auto number = dyn_cast<FloatAttr>(value);
    return number && number.getValue().isFinite() && !(number.getValueAsDouble() < 0.0);
  }
  }
  llvm_unreachable("all entries are listed");
}

struct KnownEntry {
  StringLiteral key;
  Entry entry;
};
constexpr KnownEntry modelEntries[] = {
    {"name", Entry::Text},          {"weights_dir", Entry::Text},     {"files", Entry::Texts},
    {"blocks", Entry::Texts},       {"batch", Entry::Size},           {"seq", Entry::Size},
    {"vocab_size", Entry::Size},    {"ignore_index", Entry::Integer}, {"task", Entry::Text},
    {"max_positions", Entry::Size}, {"flops_per_token", Entry::Count}};
constexpr KnownEntry stepEntries[] = {
    {"optimizer", Entry::Text},    {"schedule", Entry::Text},       {"dtype", Entry::Text},   {"lr", Entry::Number},
    {"min_lr", Entry::Number},     {"beta1", Entry::Number},        {"beta2", Entry::Number}, {"eps", Entry::Number},
    {"momentum", Entry::Number},   {"weight_decay", Entry::Number}, {"clip", Entry::Number},  {"warmup", Entry::Count},
    {"total_steps", Entry::Count}, {"seed", Entry::Count}};

/// The texts that later stages tell apart.
constexpr std::pair<StringLiteral, std::array<StringLiteral, 3>> stepTexts[] = {
    {"optimizer", {"adamw", "sgd", ""}},
    {"schedule", {"constant", "linear", "cosine"}},
    {"dtype", {"f32", "bf16", ""}}};

} // namespace

/// The runtime reads these dictionaries by key: an entry of another type would count as absent.
LogicalResult NDDialect::verifyOperationAttribute(Operation *op, NamedAttribute attr) {
  StringRef name = attr.getName().getValue();
  if (name != names::kModel && name != names::kStep)
    return success();
  if (!isa<ModuleOp>(op))
    return op->emitOpError() << "has the attribute " << attr.getName() << ", which belongs to the module";
  auto dictionary = dyn_cast<DictionaryAttr>(attr.getValue());
  if (!dictionary)
    return op->emitOpError() << "attribute " << attr.getName() << " = " << attr.getValue() << ", expected a dictionary";
  auto fail = [&](StringRef key, Attribute value) {
    return op->emitOpError() << "attribute " << attr.getName() << ": " << key << " = " << value << ", expected ";
  };
  ArrayRef<KnownEntry> known = stepEntries;
  if (name == names::kModel)
    known = modelEntries;
  for (const KnownEntry &entry : known)
    if (Attribute value = dictionary.get(entry.key); value && !fits(entry.entry, value))
      return fail(entry.key, value) << expectationOf(entry.entry);
  if (name == names::kModel)
    return success();
  for (const auto &[key, texts] : stepTexts)
    if (auto text = dictionary.getAs<StringAttr>(key); text && !llvm::is_contained(texts, text.getValue()))
      return fail(key, text) << "one of "
                             << llvm::join(llvm::make_filter_range(texts, [](StringRef t) { return !t.empty(); }),
                                           ", ");
  return success();
}

Operation *NDDialect::materializeConstant(OpBuilder &builder, Attribute value, Type type, Location loc) {
  return arith::ConstantOp::materialize(builder, value, type, loc);
}

void NDDialect::getCanonicalizationPatterns(RewritePatternSet &patterns) const {
  populateAdditionPatterns(patterns);
  populateIndexPatterns(patterns);
}
