//===- MemoryClasses.h - What memory holds ----------------------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_LIB_REPORT_MEMORYCLASSES_H
#define ND_LIB_REPORT_MEMORYCLASSES_H

#include "nd/Dialect/RT/IR/RT.h"
#include "nd/Report/Report.h"

namespace nd {

/// What is live at the peak of a planned program, by class. `computeType` is the type of the step's products: weights
/// that are wider are masters.
MemoryReport reportMemory(rt::ProgramOp program, llvm::StringRef computeType);

} // namespace nd

#endif // ND_LIB_REPORT_MEMORYCLASSES_H
