//===- UnitWindows.h - When gathered parameters live ------------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Read off a rank's program: when the gathers of each unit (`nd.unit`) start, and when what they gathered is first and
// last read. The body of a loop counts as one turn.
//
//===----------------------------------------------------------------------===//

#ifndef ND_SCHEDULE_UNITWINDOWS_H
#define ND_SCHEDULE_UNITWINDOWS_H

#include "nd/Dialect/RT/IR/RT.h"

namespace nd {

/// Behind the name of a unit that backward gathers once more.
inline constexpr llvm::StringLiteral kAgain = ", again";

/// Whether a unit is that of a module inside another unit's: it comes and goes while the outer one is in use.
inline bool isInside(llvm::StringRef unit, llvm::StringRef outer) {
  outer.consume_back(kAgain);
  return unit.starts_with(outer) && unit.drop_front(outer.size()).starts_with(".");
}

class UnitWindows {
public:
  struct Unit {
    mlir::StringAttr name;
    llvm::SmallVector<mlir::Operation *> starts;
    int64_t start = 0, firstRead = 0, lastRead = 0; ///< positions in the program
    mlir::Operation *lastReader = nullptr;
    int64_t turn = 0; ///< its place in the order in which units come into use
    /// Units that are first read between the start of this one's gathers and its own first read; 0 for what is
    /// gathered in front of the loop over microbatches, for all of them (`nd.once`).
    int64_t ahead = 0;
  };

  explicit UnitWindows(rt::ProgramOp program);

  /// In the order in which they are first read.
  llvm::ArrayRef<Unit> getUnits() const { return units; }
  /// The unit that a collective gathers; null where it gathers none.
  const Unit *find(mlir::Operation *start) const;

private:
  std::vector<Unit> units;
};

} // namespace nd

#endif // ND_SCHEDULE_UNITWINDOWS_H
