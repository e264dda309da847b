//===- nd-run.cpp - Runs a compiled program -------------------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "nd/Launch/Call.h"
#include "nd/Launch/Train.h"
#include "nd/Pipelines/StepOptionsCL.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/WithColor.h"

using namespace llvm;

namespace {

/// Made in main, after options of LLVM's own libraries have given up the names that are ours.
struct Options {
  cl::OptionCategory category{"nd-run options"};
  cl::opt<std::string> program{cl::Positional, cl::Required, cl::desc("<program folder>"), cl::cat(category)};
  cl::opt<std::string> data{"data", cl::desc("Token file (nd-data makes one)"), cl::value_desc("tokens.bin"),
                            cl::cat(category)};
  cl::opt<std::string> dataDtype{"data-dtype", cl::desc("Type of its tokens, where no sidecar says"),
                                 cl::value_desc("uint16|uint32"), cl::cat(category)};
  cl::opt<bool> noShuffle{"no-shuffle", cl::desc("Take the samples in the file's order"), cl::cat(category)};
  cl::opt<int64_t> steps{"steps", cl::desc("Number of steps"), cl::init(0), cl::cat(category)};
  cl::opt<std::string> weights{"weights", cl::desc("Folder of the initial weights (default: the export's)"),
                               cl::value_desc("folder"), cl::cat(category)};
  cl::opt<std::string> save{"save", cl::desc("Write a folder that transformers loads, at the end"),
                            cl::value_desc("folder"), cl::cat(category)};
  cl::opt<std::string> saveDtype{"save-dtype",
                                 cl::desc("Type of the saved weights (default: that of the initial ones)"),
                                 cl::value_desc("f32|bf16|f16"), cl::cat(category)};
  cl::opt<std::string> metrics{"metrics", cl::desc("Write an object of JSON for each step"),
                               cl::value_desc("metrics.jsonl"), cl::cat(category)};
  cl::opt<std::string> dumpGradients{"dump-gradients", cl::desc("Write the gradients of step 1 into this folder"),
                                     cl::value_desc("folder"), cl::cat(category)};
  cl::opt<int> threads{"threads", cl::desc("Threads of each rank (default: cores / ranks, at least 1)"), cl::init(0),
                       cl::cat(category)};
  cl::opt<std::string> call{"call", cl::desc("Run the program once on the tensors of this safetensors file"),
                            cl::value_desc("in.safetensors"), cl::cat(category)};
  cl::opt<std::string> output{"o", cl::desc("Where --call writes the results"), cl::value_desc("out.safetensors"),
                              cl::cat(category)};
};

Error runProgram(const Options &options, const nd::StepOptionsCL &stepOptions, bool &interrupted) {
  Expected<nd::launch::Manifest> manifest = nd::launch::readManifest(options.program);
  if (!manifest)
    return manifest.takeError();
  if (!options.call.empty() || !options.output.empty()) {
    if (options.call.empty() || options.output.empty())
      return nd::launch::makeError("--call in.safetensors and -o out.safetensors belong together");
    return nd::launch::callProgram(*manifest, options.call, options.output, options.threads);
  }
  nd::launch::TrainOptions train;
  train.data = options.data;
  train.dataDtype = options.dataDtype;
  train.steps = options.steps;
  train.weights = options.weights;
  train.save = options.save;
  train.saveDtype = options.saveDtype;
  train.metrics = options.metrics;
  train.dumpGradients = options.dumpGradients;
  train.shuffle = !options.noShuffle;
  train.threads = options.threads;
  Expected<nd::StepOptions> step = stepOptions.get();
  if (!step)
    return step.takeError();
  if (cl::getRegisteredOptions().lookup("seed")->getNumOccurrences())
    train.seed = step->seed;
  return nd::launch::trainProgram(*manifest, train, interrupted);
}

} // namespace

int main(int argc, char **argv) {
  InitLLVM initialize(argc, argv);
  if (cl::Option *taken = cl::getRegisteredOptions().lookup("threads"))
    taken->removeArgument();
  Options options;
  nd::StepOptionsCL stepOptions;
  cl::HideUnrelatedOptions(options.category);
  cl::ParseCommandLineOptions(argc, argv, "Runs a program that nd-compile made, one process a rank.\n");
  bool interrupted = false;
  if (Error error = runProgram(options, stepOptions, interrupted)) {
    WithColor::error(errs(), "nd-run") << toString(std::move(error)) << '\n';
    constexpr int stoppedByUser = 130;
    return interrupted ? stoppedByUser : 1;
  }
  return 0;
}
