//===- nd-run.cpp - Runs a compiled program -------------------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "nd/Launch/Call.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/WithColor.h"

using namespace llvm;

namespace {

/// Made in main, after options of LLVM's own libraries have given up the names that are ours.
struct Options {
  cl::OptionCategory category{"nd-run options"};
  cl::opt<std::string> program{cl::Positional, cl::Required, cl::desc("<program folder>"), cl::cat(category)};
  cl::opt<int> threads{"threads", cl::desc("Threads of each rank (default: cores / ranks, at least 1)"), cl::init(0),
                       cl::cat(category)};
  cl::opt<std::string> call{"call", cl::desc("Run the program once on the tensors of this safetensors file"),
                            cl::value_desc("in.safetensors"), cl::cat(category)};
  cl::opt<std::string> output{"o", cl::desc("Where --call writes the results"), cl::value_desc("out.safetensors"),
                              cl::cat(category)};
};

Error runProgram(const Options &options) {
  Expected<nd::launch::Manifest> manifest = nd::launch::readManifest(options.program);
  if (!manifest)
    return manifest.takeError();
  if (options.call.empty() || options.output.empty())
    return nd::launch::failure("give --call in.safetensors -o out.safetensors");
  return nd::launch::callProgram(*manifest, options.call, options.output, options.threads);
}

} // namespace

int main(int argc, char **argv) {
  InitLLVM initialize(argc, argv);
  if (cl::Option *taken = cl::getRegisteredOptions().lookup("threads"))
    taken->removeArgument();
  Options options;
  cl::HideUnrelatedOptions(options.category);
  cl::ParseCommandLineOptions(argc, argv, "Runs a program that nd-compile made, one process a rank.\n");
  if (Error error = runProgram(options)) {
    WithColor::error(errs(), "nd-run") << toString(std::move(error)) << '\n';
    return 1;
  }
  return 0;
}
