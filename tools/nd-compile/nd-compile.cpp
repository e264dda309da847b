//===- nd-compile.cpp - From a training step to a program folder ----------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Support/FileUtilities.h"
#include "nd/Codegen/Host/CompileProgram.h"
#include "nd/Codegen/Host/ObjectEmitter.h"
#include "nd/Dialect/RT/IR/RT.h"
#include "nd/Pipelines/HostPipeline.h"
#include "nd/Pipelines/Registration.h"
#include "nd/Support/CommandLine.h"
#include "nd/Support/StageDump.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/WithColor.h"

#include <chrono>

using namespace mlir;
namespace cl = llvm::cl;

namespace {

int fail(const Twine &message) {
  llvm::WithColor::error(llvm::errs(), "nd-compile") << message << "\n";
  return EXIT_FAILURE;
}

/// The runtime's libraries lie beside the folder of this executable, in the build tree as after an installation.
std::string defaultRuntimeFolder(const char *argv0) {
  SmallString<128> path(llvm::sys::fs::getMainExecutable(argv0, reinterpret_cast<void *>(&defaultRuntimeFolder)));
  llvm::sys::path::remove_filename(path);
  llvm::sys::path::append(path, "..", "lib");
  llvm::sys::path::remove_dots(path, /*remove_dot_dot=*/true);
  return path.str().str();
}

} // namespace

int main(int argc, char **argv) {
  llvm::InitLLVM initialized(argc, argv);
  nd::hideLibraryOptions();
  cl::opt<std::string> input(cl::Positional, cl::desc("<step.mlir, or a rank's program>"), cl::init("-"));
  cl::opt<std::string> output("o", cl::desc("The program folder to write"), cl::value_desc("folder"), cl::Required);
  cl::opt<std::string> target("target", cl::desc("What the program runs on: host [host]"), cl::init("host"));
  cl::opt<std::string> stages("dump-stages", cl::desc("Write the IR after each pass to this folder"),
                              cl::value_desc("folder"));
  cl::opt<std::string> runtime("runtime-dir", cl::desc("Where the runtime's static libraries are"),
                               cl::value_desc("folder"), cl::init(defaultRuntimeFolder(argv[0])));
  cl::opt<bool> keepObjects("keep-objects", cl::desc("Keep the object files in the program folder"));
  cl::opt<bool> unverified("unverified", cl::Hidden,
                           cl::desc("Compile a rank program as it is, to see what the verifiers refuse do"));
  cl::opt<bool> verbose("verbose", cl::desc("Say how long each part takes"));
  cl::ParseCommandLineOptions(argc, argv, "nd-compile: compiles a training step to one executable per distinct rank\n");
  if (target != "host")
    return fail("--target=" + target + " does not exist; the only target is host");

  auto last = std::chrono::steady_clock::now();
  auto progress = [&](StringRef what) {
    auto now = std::chrono::steady_clock::now();
    if (verbose)
      llvm::errs() << llvm::format("%8.0f ms  ", std::chrono::duration<double, std::milli>(now - last).count()) << what
                   << "\n";
    last = now;
  };

  DialectRegistry registry;
  nd::registerDialects(registry);
  nd::registerObjectEmission(registry);
  MLIRContext context(registry);
  std::string error;
  std::unique_ptr<llvm::MemoryBuffer> file = openInputFile(input, &error);
  if (!file)
    return fail(error);
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(std::move(file), SMLoc());
  SourceMgrDiagnosticHandler diagnostics(sources, &context);
  OwningOpRef<ModuleOp> module = parseSourceFile<ModuleOp>(sources, &context);
  if (!module)
    return fail("cannot read " + input);
  progress("read");

  PassManager pm(&context);
  if (module->getOps<nd::rt::ProgramOp>().empty())
    nd::buildHostPipeline(pm);
  else if (!unverified)
    nd::buildRankProgramVerification(pm);
  if (!stages.empty())
    if (llvm::Error failure = nd::dumpStages(pm, stages))
      return fail(llvm::toString(std::move(failure)));
  if (failed(pm.run(*module)))
    return fail("cannot compile " + input);
  progress("passes");

  nd::HostCompileOptions options;
  options.outputFolder = output;
  options.runtimeFolder = runtime;
  options.keepObjects = keepObjects;
  options.progress = progress;
  if (llvm::Error failure = nd::compileHostProgram(*module, options))
    return fail(llvm::toString(std::move(failure)));
  return EXIT_SUCCESS;
}
