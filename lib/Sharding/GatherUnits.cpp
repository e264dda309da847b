//===- GatherUnits.cpp - Which parameters are gathered together -----------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "GatherUnits.h"
#include "nd/Dialect/ND/IR/Names.h"
#include "nd/Schedule/UnitWindows.h"

using namespace mlir;
using namespace nd;

namespace {

/// The position in `blocks` of the block that a parameter belongs to by its name.
std::optional<unsigned> blockOf(StringRef name, ArrayAttr blocks) {
  for (auto [index, block] : llvm::enumerate(blocks.getAsRange<StringAttr>())) {
    StringRef path = block.getValue();
    if (name.starts_with(path) && name.drop_front(path.size()).starts_with("."))
      return index;
  }
  return std::nullopt;
}

} // namespace

GatherUnits::GatherUnits(Program &program, const Analysis &analysis) : function(program.function), analysis(analysis) {
  auto module = function->getParentOfType<ModuleOp>();
  blocks = dyn_cast_or_null<ArrayAttr>(names::moduleEntry(module, names::kModel, "blocks"));
  auto keep = dyn_cast_or_null<BoolAttr>(names::moduleEntry(module, names::kPlan, "keep_gathered"));
  if (!blocks)
    blocks = ArrayAttr::get(function.getContext(), {});

  // Forward operations in front of the first that reads a block's parameter are the embedding.
  bool inEmbedding = !blocks.empty();
  llvm::DenseSet<BlockArgument> early, late;
  for (const Analysis::Step &step : analysis.getSteps()) {
    if (!analysis.isForward(step.op))
      continue;
    for (Value operand : step.op->getOperands()) {
      BlockArgument parameter = getWeightBehind(operand, function);
      if (!parameter)
        continue;
      if (std::optional<unsigned> block = blockOf(names::argName(function, parameter.getArgNumber()), blocks)) {
        units[parameter] = 1 + *block;
        inEmbedding = false;
      } else {
        (inEmbedding ? early : late).insert(parameter);
      }
    }
  }
  for (BlockArgument parameter : late)
    units[parameter] = 1 + blocks.size();
  if (keep && keep.getValue())
    return;
  for (auto [parameter, unit] : units)
    if (unit != 1 + blocks.size())
      again.insert(parameter);
  for (BlockArgument parameter : early)
    if (!late.contains(parameter))
      again.insert(parameter);
}

bool GatherUnits::isGatheredAgain(Value value, Operation *user) const {
  if (analysis.isForward(user))
    return false;
  BlockArgument parameter = getWeightBehind(value, function);
  return parameter && again.contains(parameter);
}

StringAttr GatherUnits::getName(Value value, bool isAgain) const {
  BlockArgument parameter = getWeightBehind(value, function);
  if (!parameter)
    return {};
  unsigned unit = getUnit(parameter);
  StringRef name = "embedding";
  if (unit > 0)
    name = unit <= blocks.size() ? cast<StringAttr>(blocks[unit - 1]).getValue() : StringRef("head");
  return StringAttr::get(blocks.getContext(), name + Twine(isAgain ? kAgain : ""));
}
