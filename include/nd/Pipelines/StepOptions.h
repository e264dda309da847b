//===- StepOptions.h - What a training step is made of ----------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_PIPELINES_STEPOPTIONS_H
#define ND_PIPELINES_STEPOPTIONS_H

#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace mlir {
class DictionaryAttr;
class MLIRContext;
} // namespace mlir

namespace nd {

/// Options of the training step, with the defaults that every command shares. What the compiled step does not depend on
/// (learning rate, schedule, seed) is recorded with the rest in the module's `nd.step`, where the runtime reads it.
struct StepOptions {
  enum class Optimizer { AdamW, SGD };
  enum class Schedule { Constant, Linear, Cosine };

  Optimizer optimizer = Optimizer::AdamW;
  double lr = 1e-4;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weightDecay = 0.01;
  double momentum = 0.0;
  double clip = 1.0; ///< largest global gradient norm; 0: gradients are not clipped
  bool decayAll = false;
  std::vector<std::string> noDecay; ///< globs over parameter names
  std::string dtype = "f32";
  int64_t microbatches = 1; ///< of a step: gradients are summed over them before the update

  Schedule schedule = Schedule::Constant;
  int64_t warmup = 0;
  double minLr = 0.0;
  int64_t totalSteps = 0; ///< the schedule's horizon; 0: the run's number of steps
  int64_t seed = 0;

  bool forwardOnly = false;
  bool keepGradients = false;

  std::string shard;                    ///< mesh, such as `dp4`; empty: one rank
  int64_t ranks = 0;                    ///< 0: the mesh says how many
  std::string system = "host";          ///< a built-in system, or a file that describes one
  int64_t nodes = 0;                    ///< 0: as few as the system needs
  std::vector<std::string> annotations; ///< `GLOB=[fsdp+tp,_]`
  int64_t zero = 3;
  bool keepGathered = false;
  std::string fsdpUnit = "block"; ///< block, whole, or a glob over paths of modules
  std::string cpMode = "auto";
  bool sequenceParallel = true;
  std::string lossChunk = "auto"; ///< or `off`, or the largest number of tokens whose logits exist at once
  int64_t prefetchUnits = 1;      ///< units that gathers of parameters run ahead at most

  /// Fails with a message that names the option, its value and what is allowed.
  llvm::Error validate() const;

  /// What `nd.step` of the module holds.
  mlir::DictionaryAttr getAttribute(mlir::MLIRContext *context) const;
};

llvm::StringRef stringify(StepOptions::Optimizer optimizer);
llvm::StringRef stringify(StepOptions::Schedule schedule);

} // namespace nd

#endif // ND_PIPELINES_STEPOPTIONS_H
