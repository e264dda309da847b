//===- Warnings.h - What a colleague would point out ------------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_LIB_REPORT_WARNINGS_H
#define ND_LIB_REPORT_WARNINGS_H

#include "nd/Report/Report.h"

namespace nd {

/// Adds the report's warnings: the rest is there already.
void collectWarnings(Report &report);

} // namespace nd

#endif // ND_LIB_REPORT_WARNINGS_H
