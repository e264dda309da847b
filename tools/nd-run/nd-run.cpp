//===- nd-run.cpp - Runs a compiled program -------------------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "nd/Launch/Call.h"
#include "nd/Launch/Road.h"
#include "nd/Launch/Train.h"
#include "nd/Pipelines/StepOptionsCL.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/WithColor.h"
#include <csignal>

using namespace llvm;

namespace {

/// Made in main, after options of LLVM's own libraries have given up the names that are ours.
struct Options {
  cl::OptionCategory category{"nd-run options"};
  cl::opt<std::string> program{cl::Positional, cl::Required, cl::desc("<program folder | model.onnx>"),
                               cl::cat(category)};
  cl::opt<int64_t> batch{"batch", cl::desc("model.onnx: sequences of one microbatch over all replicas"), cl::init(0),
                         cl::cat(category)};
  cl::opt<int64_t> seq{"seq", cl::desc("model.onnx: tokens of one sequence"), cl::init(0), cl::cat(category)};
  cl::opt<std::string> target{"target", cl::desc("model.onnx: what to compile for [host]"), cl::init("host"),
                              cl::value_desc("host"), cl::cat(category)};
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
  cl::opt<std::string> bind{
      "bind",
      cl::desc("Whether each thread has a core of its own to run on: where there are as many that "
               "no other job took (auto), or never [off]"),
      cl::init("off"), cl::value_desc("auto|off"), cl::cat(category)};
  cl::opt<bool> ignoreMemory{"ignore-memory", cl::desc("Start ranks that this machine has too little memory for"),
                             cl::cat(category)};
  cl::opt<std::string> call{"call", cl::desc("Run the program once on the tensors of this safetensors file"),
                            cl::value_desc("in.safetensors"), cl::cat(category)};
  cl::opt<std::string> output{"o", cl::desc("Where --call writes the results"), cl::value_desc("out.safetensors"),
                              cl::cat(category)};
};

/// The arguments of the command line that are options of the training step, as they were given.
std::vector<std::string> stepArguments(int argc, char **argv, const cl::OptionCategory &own) {
  std::vector<std::string> arguments;
  for (int i = 1; i < argc; ++i) {
    StringRef argument = argv[i];
    if (!argument.consume_front("-"))
      continue;
    argument.consume_front("-");
    auto [name, value] = argument.split('=');
    cl::Option *option = cl::getRegisteredOptions().lookup(name);
    if (!option)
      continue;
    bool separate = option->getValueExpectedFlag() == cl::ValueRequired && !argument.contains('=') && i + 1 < argc;
    if (!is_contained(option->Categories, &own)) {
      arguments.push_back(argv[i]);
      if (separate)
        arguments.push_back(argv[i + 1]);
    }
    i += separate;
  }
  return arguments;
}

Expected<std::string> programFolder(const Options &options, std::vector<std::string> arguments) {
  if (!StringRef(options.program).ends_with(".onnx")) {
    for (StringRef argument : arguments)
      if (!argument.ltrim('-').starts_with("seed") && argument.starts_with("-"))
        return nd::launch::makeError(argument + " belongs to the training step, which is compiled into " +
                                     options.program + "; give it to nd-opt, or run the model.onnx");
    if (options.batch.getNumOccurrences() || options.seq.getNumOccurrences())
      return nd::launch::makeError("--batch and --seq are compiled into " + options.program +
                                   "; give them to nd-import, or "
                                   "run the model.onnx");
    return options.program;
  }
  nd::launch::RoadRequest request;
  request.model = options.program;
  request.batch = options.batch;
  request.sequence = options.seq;
  request.target = options.target;
  request.stepArguments = std::move(arguments);
  static int here;
  request.toolsFolder = sys::path::parent_path(sys::fs::getMainExecutable(nullptr, &here)).str();
  return nd::launch::buildProgram(request);
}

Error runProgram(const Options &options, const nd::StepOptionsCL &stepOptions, std::vector<std::string> arguments,
                 bool &interrupted) {
  Expected<nd::StepOptions> step = stepOptions.get();
  if (!step)
    return step.takeError();
  if (options.threads.getNumOccurrences() && options.threads < 1)
    return nd::launch::makeError("--threads=" + Twine(options.threads) + ": a rank has at least one thread");
  if (options.bind != "auto" && options.bind != "off")
    return nd::launch::makeError("--bind=" + options.bind + ": give auto or off");
  if (options.saveDtype.getNumOccurrences() && options.save.empty())
    return nd::launch::makeError("--save-dtype=" + options.saveDtype +
                                 " says how to write a folder that nobody asks for; give --save DIR too");
  Expected<std::string> folder = programFolder(options, std::move(arguments));
  if (!folder)
    return folder.takeError();
  Expected<nd::launch::Manifest> manifest = nd::launch::readManifest(*folder);
  if (!manifest)
    return manifest.takeError();
  if (!options.call.empty() || !options.output.empty()) {
    if (options.call.empty() || options.output.empty())
      return nd::launch::makeError("--call in.safetensors and -o out.safetensors belong together");
    return nd::launch::callProgram(*manifest, options.call, options.output, options.threads, options.ignoreMemory);
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
  train.bind = options.bind == "auto";
  train.ignoreMemory = options.ignoreMemory;
  if (cl::getRegisteredOptions().lookup("seed")->getNumOccurrences())
    train.seed = step->seed;
  return nd::launch::trainProgram(*manifest, train, interrupted);
}

} // namespace

int main(int argc, char **argv) {
  InitLLVM initialize(argc, argv);
  signal(SIGXFSZ, SIG_IGN); // a write over the limit is an error like that of a full disk
  for (const char *name : {"threads", "target", "batch", "seq", "save", "data", "steps", "weights", "metrics", "call"})
    if (cl::Option *taken = cl::getRegisteredOptions().lookup(name))
      taken->removeArgument();
  Options options;
  nd::StepOptionsCL stepOptions;
  SmallVector<const cl::OptionCategory *> categories = {&options.category};
  if (cl::Option *option = cl::getRegisteredOptions().lookup("optimizer"))
    categories.push_back(option->Categories.front());
  cl::HideUnrelatedOptions(categories);
  cl::ParseCommandLineOptions(
      argc, argv,
      "Trains a model, one process a rank: a program that nd-compile made, or a model.onnx, which is compiled "
      "first (and found in the cache the next time).\n");
  bool interrupted = false;
  if (Error error = runProgram(options, stepOptions, stepArguments(argc, argv, options.category), interrupted)) {
    WithColor::error(errs(), "nd-run") << toString(std::move(error)) << '\n';
    constexpr int stoppedByUser = 130;
    return interrupted ? stoppedByUser : 1;
  }
  return 0;
}
