//===- CommandLine.h - What all tools do with their options -----*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_SUPPORT_COMMANDLINE_H
#define ND_SUPPORT_COMMANDLINE_H

namespace nd {

/// Hides the hundreds of options that libLLVM and libMLIR register by themselves from `--help`. Call it first in main:
/// every option registered later is shown.
void hideLibraryOptions();

} // namespace nd

#endif // ND_SUPPORT_COMMANDLINE_H
