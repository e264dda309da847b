//===- VerifyGathers.cpp - No parameter stays gathered --------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "nd/Dialect/ND/IR/Names.h"
#include "nd/Schedule/Passes.h"
#include "nd/Schedule/UnitWindows.h"
#include "llvm/ADT/StringSet.h"

namespace nd {
#define GEN_PASS_DEF_VERIFYGATHERS
#include "nd/Schedule/Passes.h.inc"
} // namespace nd

using namespace mlir;
using namespace nd;

namespace {

struct VerifyGathers : nd::impl::VerifyGathersBase<VerifyGathers> {
  void runOnOperation() override {
    auto module = getOperation()->getParentOfType<ModuleOp>();
    int64_t prefetch = module ? names::moduleInt(module, names::kPlan, "prefetch_units").value_or(1) : 1;
    UnitWindows windows(getOperation());
    ArrayRef<UnitWindows::Unit> units = windows.getUnits();
    llvm::StringSet<> known;
    for (const UnitWindows::Unit &unit : units)
      known.insert(unit.name.getValue());
    for (const UnitWindows::Unit &unit : units) {
      if (unit.ahead > prefetch) {
        unit.starts.front()->emitError() << "gathers '" << unit.name.getValue() << "' " << unit.ahead
                                         << " units before its first reader; at most " << prefetch << " are allowed";
        return signalPassFailure();
      }
      // Gathered twice, so it is given back in between.
      StringRef name = unit.name.getValue();
      bool isGivenBack = name.ends_with(kAgain) || known.contains((name + kAgain).str());
      // The first reader of the second unit behind it, without those inside of it.
      const UnitWindows::Unit *later = units.end(), *next = nullptr;
      for (const UnitWindows::Unit &other : llvm::drop_begin(units, &unit - units.begin() + 1)) {
        if (other.turn == unit.turn || isInside(other.name.getValue(), name))
          continue;
        if (next && other.turn != next->turn) {
          later = &other;
          break;
        }
        next = next ? next : &other;
      }
      if (isGivenBack && later != units.end() && unit.lastRead > later->firstRead) {
        unit.lastReader->emitError() << "reads gathered parameters of '" << name << "' behind the first reader of '"
                                     << later->name.getValue()
                                     << "', two units later; they have to be given back before";
        return signalPassFailure();
      }
    }
  }
};

} // namespace
