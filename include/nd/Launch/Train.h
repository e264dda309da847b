//===- Train.h - Running the steps of a program -----------------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_LAUNCH_TRAIN_H
#define ND_LAUNCH_TRAIN_H

#include "nd/Launch/Manifest.h"

namespace nd::launch {

struct TrainOptions {
  std::string data;      ///< token file
  std::string dataDtype; ///< of its tokens; empty: the sidecar says
  int64_t steps = 0;
  std::string weights; ///< folder; empty: the export's
  std::string save, saveDtype;
  std::string metrics;
  std::string dumpGradients;   ///< folder for the gradients of step 1
  std::optional<int64_t> seed; ///< unset: the program's
  bool shuffle = true;
  int threads = 0;
  bool bind = false;
  bool ignoreMemory = false;
};

/// Trains: weights in, steps on a token file, weights out. `interrupted` says whether the user stopped it.
llvm::Error trainProgram(const Manifest &manifest, const TrainOptions &options, bool &interrupted);

} // namespace nd::launch

#endif // ND_LAUNCH_TRAIN_H
