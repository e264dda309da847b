//===- StepOptionsCL.h - The step's options on command lines ----*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_PIPELINES_STEPOPTIONSCL_H
#define ND_PIPELINES_STEPOPTIONSCL_H

#include "nd/Pipelines/StepOptions.h"
#include <memory>

namespace nd {

/// Registers the step's options with LLVM's command line parser while it lives; every command that takes them owns one.
class StepOptionsCL {
public:
  StepOptionsCL();
  ~StepOptionsCL();

  /// Whether any of the options that make a step was given, `--train` included; `--system` and `--nodes` do not.
  bool anyGiven() const;

  /// The options as given, validated. Call it after the command line was parsed.
  llvm::Expected<StepOptions> get() const;

  /// What to tell about options that were given, and that the mesh has no ranks for. The options are valid.
  std::vector<std::string> getWarnings() const;

private:
  struct Options;
  std::unique_ptr<Options> options;
};

} // namespace nd

#endif // ND_PIPELINES_STEPOPTIONSCL_H
