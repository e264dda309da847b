//===- GatherUnits.cpp - Which parameters are gathered together -----------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Reshard/GatherUnits.h"
#include "nd/Dialect/ND/IR/Names.h"
#include "nd/Schedule/UnitWindows.h"
#include "nd/Sharding/UnitRule.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace nd;

namespace {

constexpr StringLiteral kEmbedding = "embedding", kHead = "head", kWhole = "model";

/// The block that a parameter belongs to by its name, or null.
StringAttr blockOf(StringRef name, ArrayAttr blocks) {
  for (auto block : blocks.getAsRange<StringAttr>()) {
    StringRef path = block.getValue();
    if (name.starts_with(path) && name.drop_front(path.size()).starts_with("."))
      return block;
  }
  return {};
}

/// Whether the second unit behind `unit` is in use; units inside of it do not count.
bool isPast(StringAttr unit, ArrayRef<StringAttr> order) {
  unsigned behind = 0;
  for (StringAttr other : llvm::reverse(order)) {
    if (other == unit || behind == 2)
      break;
    behind += !isInside(other.getValue(), unit.getValue());
  }
  return behind == 2;
}

} // namespace

LogicalResult nd::checkUnitRule(func::FuncOp function, StringRef text) {
  llvm::Expected<UnitRule> rule = UnitRule::parse(text);
  if (!rule)
    return function.emitError() << llvm::toString(rule.takeError());
  if (!rule->isGlob())
    return success();
  SmallVector<StringRef> paths;
  llvm::StringSet<> seen;
  for (unsigned index : llvm::seq(function.getNumArguments())) {
    if (names::argKind(function, index) != names::kind::kWeight)
      continue;
    StringRef name = names::userName(function, index);
    if (!rule->match(name).empty())
      return success();
    for (StringRef path : modulePaths(name))
      if (seen.insert(path).second)
        paths.push_back(path);
  }
  SmallVector<std::string> alike;
  for (StringRef path : rule->findAlike(paths))
    alike.push_back(("'" + path + "'").str());
  return function.emitError()
         << "--fsdp-unit=" << text
         << ": no module of the model has such a path, and no parameter such a name; some spelled alike are "
         << llvm::join(alike, ", ") << "; or write block, or whole";
}

GatherUnits::GatherUnits(Program &program, const Analysis &analysis) : function(program.function), analysis(analysis) {
  MLIRContext *context = function.getContext();
  auto module = function->getParentOfType<ModuleOp>();
  auto blocks = dyn_cast_or_null<ArrayAttr>(names::moduleEntry(module, names::kModel, "blocks"));
  auto keep = dyn_cast_or_null<BoolAttr>(names::moduleEntry(module, names::kPlan, "keep_gathered"));
  auto text = dyn_cast_or_null<StringAttr>(names::moduleEntry(module, names::kPlan, "fsdp_unit"));
  isOncePerStep = names::moduleInt(module, names::kPlan, "zero").value_or(3) < 3;
  keepsAll = isOncePerStep || (keep && keep.getValue());
  if (!blocks)
    blocks = ArrayAttr::get(context, {});
  UnitRule rule = text ? llvm::cantFail(UnitRule::parse(text.getValue())) : UnitRule();

  auto unitOf = [&](BlockArgument parameter) -> StringAttr {
    StringRef name = names::userName(function, parameter.getArgNumber());
    if (rule.isWhole())
      return StringAttr::get(context, kWhole);
    StringRef module = rule.match(name);
    return module.empty() ? blockOf(name, blocks) : StringAttr::get(context, module);
  };
  // Forward operations in front of the first that reads a block's parameter are the embedding.
  StringAttr embedding = StringAttr::get(context, kEmbedding), head = StringAttr::get(context, kHead);
  StringAttr outside = blocks.empty() ? head : embedding;
  SmallVector<StringAttr> order; ///< in which units come into use
  for (const Analysis::Step &step : analysis.getSteps()) {
    // Forms of a parameter stand anywhere; what reads them tells when it comes into use.
    bool isForm = step.op->getNumResults() == 1 && getWeightBehind(step.op->getResult(0), function);
    if (!analysis.isForward(step.op) || isForm)
      continue;
    for (Value operand : step.op->getOperands()) {
      BlockArgument parameter = getWeightBehind(operand, function);
      if (!parameter)
        continue;
      if (blockOf(names::userName(function, parameter.getArgNumber()), blocks))
        outside = head;
      StringAttr unit = unitOf(parameter);
      kept = units[parameter] = unit ? unit : outside;
      if (!llvm::is_contained(order, kept))
        order.push_back(kept);
      if (unit && isPast(unit, order))
        shared.insert(parameter);
    }
  }
}

void GatherUnits::separateForms() {
  auto isGathered = [&](BlockArgument parameter) {
    unsigned index = parameter.getArgNumber();
    auto used = function.getArgAttr(index, names::kUseSharding);
    return isGivenBack(parameter) && used && used != function.getArgAttr(index, names::kSharding);
  };
  llvm::DenseMap<Value, Value> copies;
  std::function<Value(Value)> copyOf = [&](Value value) -> Value {
    Operation *op = value.getDefiningOp();
    if (!op || !analysis.isForward(op))
      return value;
    Value &known = copies[value];
    if (known)
      return known;
    Value source = copyOf(op->getOperand(0));
    Operation *copy = OpBuilder(op).clone(*op);
    copy->setOperand(0, source);
    copy->setAttr(names::kRecomputed, UnitAttr::get(op->getContext()));
    return copies[value] = copy->getResult(0);
  };
  for (const Analysis::Step &step : analysis.getSteps()) {
    if (analysis.isForward(step.op) || analysis.isUpdate(step.op))
      continue;
    for (OpOperand &operand : step.op->getOpOperands())
      if (BlockArgument parameter = getWeightBehind(operand.get(), function); parameter && isGathered(parameter))
        operand.set(copyOf(operand.get()));
  }
}

bool GatherUnits::isGatheredAgain(Value value, Operation *user) const {
  if (analysis.isForward(user))
    return false;
  BlockArgument parameter = getWeightBehind(value, function);
  return parameter && isGivenBack(parameter);
}

bool GatherUnits::isGivenBack(BlockArgument parameter) const {
  StringAttr unit = units.lookup(parameter);
  return !keepsAll && unit && unit != kept && !shared.contains(parameter);
}

StringAttr GatherUnits::getName(Value value, bool isAgain) const {
  BlockArgument parameter = getWeightBehind(value, function);
  if (!parameter)
    return {};
  if (shared.contains(parameter) && units.lookup(parameter) != kept)
    return StringAttr::get(value.getContext(), "shared by blocks");
  // What forward does not read counts as the embedding.
  StringAttr unit = units.lookup(parameter);
  StringRef name = unit ? unit.getValue() : StringRef(kEmbedding);
  return StringAttr::get(value.getContext(), name + Twine(isAgain ? kAgain : ""));
}
