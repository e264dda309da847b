//===- nd-opt.cpp - From a model to its training step, pass by pass -------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "mlir/IR/Dialect.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "nd/Pipelines/Registration.h"
#include "nd/Pipelines/StepOptionsCL.h"
#include "nd/Pipelines/StepPipeline.h"
#include "nd/Support/CommandLine.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/ToolOutputFile.h"
#include "llvm/Support/WithColor.h"

using namespace mlir;

/// Passes named on the command line run after the step's pipeline.
static void addStepPipeline(MlirOptMainConfig &config, const nd::StepOptions &options) {
  MlirOptMainConfig named = config;
  config.setPassPipelineSetupFn([named, options](PassManager &pm) {
    nd::buildStepPipeline(pm, options);
    return named.setupPassPipeline(pm);
  });
}

/// MLIR attaches the whole operation to an error, which for a function is the whole model. The location says enough,
/// unless it is asked for.
static void shortenDiagnostics() {
  llvm::cl::Option *option = llvm::cl::getRegisteredOptions().lookup("mlir-print-op-on-diagnostic");
  if (option && option->getNumOccurrences() == 0)
    option->addOccurrence(0, option->ArgStr, "false");
}

static int fail(const Twine &message) {
  llvm::WithColor::error(llvm::errs(), "nd-opt") << message << "\n";
  return EXIT_FAILURE;
}

/// The names of the dialects' operations, a line each: tests check that they know them all.
static int listOperations(const DialectRegistry &registry) {
  MLIRContext context(registry);
  for (StringRef dialect : {"nd", "onnx", "rt"})
    context.getOrLoadDialect(dialect);
  for (RegisteredOperationName name : context.getRegisteredOperations())
    if (llvm::is_contained({"nd", "onnx", "rt"}, name.getDialectNamespace()))
      llvm::outs() << name.getStringRef() << "\n";
  return EXIT_SUCCESS;
}

int main(int argc, char **argv) {
  llvm::InitLLVM initialized(argc, argv);
  nd::hideLibraryOptions();
  DialectRegistry registry;
  nd::registerDialects(registry);
  nd::registerPasses();
  nd::StepOptionsCL stepOptions;
  llvm::cl::opt<bool> listed("list-operations", llvm::cl::desc("Print the names of nd's operations and stop"));
  auto [inputName, outputName] = registerAndParseCLIOptions(
      argc, argv, "nd-opt: builds and shards the training step of a model, or runs the passes that are named\n",
      registry);

  if (listed)
    return listOperations(registry);
  shortenDiagnostics();
  MlirOptMainConfig config = MlirOptMainConfig::createFromCLOptions();
  if (stepOptions.anyGiven()) {
    llvm::Expected<nd::StepOptions> options = stepOptions.get();
    if (!options)
      return fail(llvm::toString(options.takeError()));
    addStepPipeline(config, *options);
  }

  std::string error;
  std::unique_ptr<llvm::MemoryBuffer> input = openInputFile(inputName, &error);
  if (!input)
    return fail(error);
  std::unique_ptr<llvm::ToolOutputFile> output = openOutputFile(outputName, &error);
  if (!output)
    return fail(error);
  if (failed(MlirOptMain(output->os(), std::move(input), registry, config)))
    return EXIT_FAILURE;
  output->keep();
  return EXIT_SUCCESS;
}
