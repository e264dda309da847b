//===- UnitWindows.cpp - When gathered parameters live --------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "nd/Schedule/UnitWindows.h"
#include "nd/Dialect/ND/IR/Names.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace nd;

/// Whether `op` puts something else in place of `buffer`.
static bool overwrites(Operation *op, Value buffer) {
  auto launch = dyn_cast<rt::LaunchOp>(op);
  return launch && llvm::any_of(launch.getInPlace(), [&](int64_t input) {
           return input >= 0 && rt::getRoot(launch.getInputs()[input]) == buffer;
         });
}

UnitWindows::UnitWindows(rt::ProgramOp program) {
  llvm::MapVector<StringAttr, Unit> byName;
  llvm::DenseMap<Value, StringAttr> gathered; ///< buffers that hold parameters of a unit
  int64_t time = 0;
  program.getBody().walk<WalkOrder::PreOrder>([&](Operation *op) {
    ++time;
    if (isa<rt::ViewOp, rt::WaitOp>(op))
      return;
    auto start = dyn_cast<rt::CollectiveStartOp>(op);
    auto name = start ? start->getAttrOfType<StringAttr>(names::kUnit) : StringAttr();
    if (name) {
      Unit &unit = byName[name];
      if (unit.starts.empty())
        unit.start = time;
      unit.name = name;
      unit.starts.push_back(op);
      for (Value target : start.getTargets())
        gathered[rt::getRoot(target)] = name;
      return;
    }
    for (Value operand : op->getOperands()) {
      if (!isa<MemRefType>(operand.getType()))
        continue;
      Value root = rt::getRoot(operand);
      auto it = gathered.find(root);
      if (it == gathered.end())
        continue;
      Unit &unit = byName[it->second];
      unit.firstRead = unit.firstRead ? unit.firstRead : time;
      unit.lastRead = time;
      unit.lastReader = op;
      if (overwrites(op, root))
        gathered.erase(it);
    }
  });
  for (auto &[name, unit] : byName)
    if (unit.lastReader)
      units.push_back(std::move(unit));
  llvm::stable_sort(units, [](const Unit &a, const Unit &b) { return a.firstRead < b.firstRead; });
  // Units that one kernel reads first come into use together.
  for (auto [index, unit] : llvm::enumerate(units))
    unit.turn = index == 0 ? 0 : units[index - 1].turn + (units[index - 1].firstRead != unit.firstRead);
  for (Unit &unit : units) {
    Operation *first = unit.starts.front();
    if (first->hasAttr(names::kOnce) && first->getBlock() != unit.lastReader->getBlock())
      continue;
    auto inUse = llvm::find_if(units, [&](const Unit &other) { return other.firstRead > unit.start; });
    unit.ahead = unit.turn - inUse->turn;
  }
}

const UnitWindows::Unit *UnitWindows::find(Operation *start) const {
  auto it = llvm::find_if(units, [&](const Unit &unit) { return llvm::is_contained(unit.starts, start); });
  return it == units.end() ? nullptr : &*it;
}
