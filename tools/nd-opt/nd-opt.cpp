//===- nd-opt.cpp - From a model to its training step, pass by pass -------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "BisectScript.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "nd/Pipelines/Registration.h"
#include "nd/Pipelines/StepOptionsCL.h"
#include "nd/Pipelines/StepPipeline.h"
#include "nd/Report/Report.h"
#include "nd/Support/CommandLine.h"
#include "nd/Support/Locations.h"
#include "nd/Support/StageDump.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/ToolOutputFile.h"
#include "llvm/Support/WithColor.h"

using namespace mlir;

/// MLIR prints `<unknown>:0` for a location that names a model's file or a module but no line: prints the name instead.
static void printNamedLocations(MLIRContext &context) {
  context.getDiagEngine().registerHandler([](Diagnostic &diagnostic) {
    auto name = dyn_cast<NameLoc>(diagnostic.getLocation());
    if (!name || name.getChildLoc()->findInstanceOf<FileLineColLoc>())
      return failure();
    llvm::errs() << name.getName().getValue() << ": " << nd::severityName(diagnostic.getSeverity()) << ": "
                 << diagnostic << "\n";
    for (Diagnostic &note : diagnostic.getNotes())
      llvm::errs() << name.getName().getValue() << ": " << nd::severityName(note.getSeverity()) << ": " << note << "\n";
    return success();
  });
}

/// Passes named on the command line run after the step's pipeline.
static void addStepPipeline(MlirOptMainConfig &config, const nd::StepOptions &options) {
  MlirOptMainConfig named = config;
  config.setPassPipelineSetupFn([named, options](PassManager &pm) {
    printNamedLocations(*pm.getContext());
    nd::buildStepPipeline(pm, options);
    return named.setupPassPipeline(pm);
  });
}

/// Every pass that runs leaves its IR in the folder.
static void addStageDump(MlirOptMainConfig &config, const std::string &folder) {
  MlirOptMainConfig silent = config;
  config.setPassPipelineSetupFn([silent, folder](PassManager &pm) -> LogicalResult {
    if (failed(silent.setupPassPipeline(pm)))
      return failure();
    if (llvm::Error error = nd::dumpStages(pm, folder)) {
      llvm::WithColor::error(llvm::errs(), "nd-opt") << llvm::toString(std::move(error)) << "\n";
      return failure();
    }
    return success();
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

/// Compiling and running stages is the work of the other tools, which lie beside this one.
static int bisect(const std::string &folder, double tolerance, int64_t seed, const char *argv0) {
  llvm::ErrorOr<std::string> python = llvm::sys::findProgramByName("python3");
  if (!python)
    return fail("--bisect needs python3 with the package safetensors on the PATH: run this after `. scripts/env.sh`");
  std::string self = llvm::sys::fs::getMainExecutable(argv0, reinterpret_cast<void *>(&bisect));
  std::string bound, number = std::to_string(seed);
  llvm::raw_string_ostream(bound) << tolerance;
  std::string problem;
  int status = llvm::sys::ExecuteAndWait(
      *python, {*python, "-c", bisectScript, folder, bound, number, llvm::sys::path::parent_path(self)}, std::nullopt,
      {}, 0, 0, &problem);
  return problem.empty() ? status : fail("--bisect: " + problem);
}

enum class ReportFormat { None, Text, Json };

/// Runs the pipeline and describes the program that a rank will run. The IR is written too where the report has a file
/// of its own.
static LogicalResult report(ReportFormat format, std::unique_ptr<llvm::MemoryBuffer> input, llvm::raw_ostream *ir,
                            llvm::raw_ostream &out, const DialectRegistry &registry, const MlirOptMainConfig &config,
                            const nd::StepOptions &options) {
  MLIRContext context(registry);
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(std::move(input), llvm::SMLoc());
  SourceMgrDiagnosticHandler diagnostics(sources, &context);
  OwningOpRef<ModuleOp> module = parseSourceFile<ModuleOp>(sources, &context);
  if (!module)
    return failure();
  PassManager pm(&context);
  if (failed(applyPassManagerCLOptions(pm)) || failed(config.setupPassPipeline(pm)) || failed(pm.run(*module)))
    return failure();
  if (ir)
    *ir << *module << "\n";
  FailureOr<nd::Report> result =
      nd::buildReport(*module, llvm::cantFail(nd::System::find(options.system)), options.nodes);
  if (failed(result))
    return failure();
  format == ReportFormat::Json ? nd::writeJson(*result, out) : nd::writeText(*result, out);
  return success();
}

/// Keeps an output that reached its file in full; says so when it did not (a full disk).
static bool keepWritten(llvm::ToolOutputFile &file, llvm::StringRef name) {
  file.os().flush();
  if (std::error_code error = file.os().error()) {
    file.os().clear_error();
    fail("cannot write '" + name.str() + "': " + error.message());
    return false;
  }
  file.keep();
  return true;
}

int main(int argc, char **argv) {
  llvm::InitLLVM initialized(argc, argv);
  nd::hideLibraryOptions();
  DialectRegistry registry;
  nd::registerDialects(registry);
  nd::registerPasses();
  nd::StepOptionsCL stepOptions;
  llvm::cl::opt<bool> listed("list-operations", llvm::cl::desc("Print the names of nd's operations and stop"));
  llvm::cl::opt<ReportFormat> format(
      "report", llvm::cl::desc("Write what the step sends, stores and computes instead of the IR; nothing is run"),
      llvm::cl::init(ReportFormat::None),
      llvm::cl::values(clEnumValN(ReportFormat::Text, "text", "tables for people"),
                       clEnumValN(ReportFormat::Json, "json", "as docs/report.md says")));
  llvm::cl::opt<std::string> reportFile("report-file", llvm::cl::desc("Write the report here, and the IR as usual"),
                                        llvm::cl::value_desc("file"));
  llvm::cl::opt<std::string> stages("dump-stages", llvm::cl::desc("Write the IR after each pass to this folder"),
                                    llvm::cl::value_desc("folder"));
  llvm::cl::opt<std::string> bisected(
      "bisect",
      llvm::cl::desc(
          "Execute the stages that --dump-stages wrote, name the first that computes something else, and stop"),
      llvm::cl::value_desc("folder"));
  llvm::cl::opt<double> tolerance("bisect-tolerance", llvm::cl::desc("Relative difference that --bisect allows [1e-5]"),
                                  llvm::cl::init(1e-5));
  llvm::cl::opt<int64_t> seed("bisect-seed", llvm::cl::desc("Seed of --bisect's random weights and batch"),
                              llvm::cl::init(0));
  auto [inputName, outputName] = registerAndParseCLIOptions(
      argc, argv, "nd-opt: builds and shards the training step of a model, or runs the passes that are named\n",
      registry);

  if (listed)
    return listOperations(registry);
  if (!bisected.empty())
    return bisect(bisected, tolerance, seed, argv[0]);
  shortenDiagnostics();
  MlirOptMainConfig config = MlirOptMainConfig::createFromCLOptions();
  llvm::Expected<nd::StepOptions> options = stepOptions.get();
  if (!options)
    return fail(llvm::toString(options.takeError()));
  for (const std::string &warning : stepOptions.getWarnings())
    llvm::WithColor::warning(llvm::errs(), "nd-opt") << warning << "\n";
  if (stepOptions.anyGiven())
    addStepPipeline(config, *options);
  if (!stages.empty())
    addStageDump(config, stages);
  if (!reportFile.empty() && format == ReportFormat::None)
    return fail("--report-file needs --report=text or --report=json");

  std::string error;
  std::unique_ptr<llvm::MemoryBuffer> input = openInputFile(inputName, &error);
  if (!input)
    return fail(error);
  std::unique_ptr<llvm::ToolOutputFile> output = openOutputFile(outputName, &error);
  if (!output)
    return fail(error);
  std::unique_ptr<llvm::ToolOutputFile> reportOutput;
  if (!reportFile.empty() && !(reportOutput = openOutputFile(reportFile, &error)))
    return fail(error);
  if (failed(format == ReportFormat::None
                 ? MlirOptMain(output->os(), std::move(input), registry, config)
                 : report(format, std::move(input), reportOutput ? &output->os() : nullptr,
                          reportOutput ? reportOutput->os() : output->os(), registry, config, *options)))
    return EXIT_FAILURE;
  if (!keepWritten(*output, outputName) || (reportOutput && !keepWritten(*reportOutput, reportFile)))
    return EXIT_FAILURE;
  return EXIT_SUCCESS;
}
