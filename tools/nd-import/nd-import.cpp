//===- nd-import.cpp - From an ONNX file to model.mlir --------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OperationSupport.h"
#include "mlir/Support/FileUtilities.h"
#include "nd/Import/ONNX/Diagnostics.h"
#include "nd/Import/ONNX/ImportModel.h"
#include "nd/Support/CommandLine.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/ToolOutputFile.h"

namespace cl = llvm::cl;

namespace {

struct Options {
  cl::opt<std::string> input{cl::Positional, cl::desc("<model.onnx>"), cl::Required};
  cl::opt<std::string> output{"o", cl::desc("Output file (- for standard output)"), cl::value_desc("file"),
                              cl::init("-")};
  cl::opt<int64_t> batch{"batch", cl::desc("Sequences of one microbatch over all replicas"), cl::value_desc("B"),
                         cl::init(0)};
  cl::opt<int64_t> seq{"seq", cl::desc("Tokens of one sequence"), cl::value_desc("S"), cl::init(0)};
  cl::opt<bool> verbatim{"verbatim", cl::desc("Stop after reading: print the nodes as they are in the file")};
  cl::opt<cl::boolOrDefault> locations{
      "locations",
      cl::desc("Print source locations, so that later errors name lines of the model (default: to files only)")};
};

int fail(const llvm::Twine &message) {
  llvm::errs() << "nd-import: error: " << message << "\n";
  return 1;
}

} // namespace

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  nd::hideLibraryOptions();
  Options options;
  cl::ParseCommandLineOptions(
      argc, argv, "nd-import: an ONNX model and its sidecar (model.nd.json) to MLIR, with every size bound\n");
  if (options.batch.getNumOccurrences() && options.batch < 1)
    return fail("--batch must be at least 1");
  if (options.seq.getNumOccurrences() && options.seq < 1)
    return fail("--seq must be at least 1");

  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  nd::onnx::PlainDiagnostics diagnostics(&context, "nd-import");
  nd::onnx::ImportOptions import{options.input, options.batch, options.seq};
  auto module = options.verbatim ? nd::onnx::importVerbatim(import, &context) : nd::onnx::importModel(import, &context);
  if (!module)
    return 1;

  std::string message;
  auto file = mlir::openOutputFile(options.output, &message);
  if (!file)
    return fail(message);
  mlir::OpPrintingFlags flags;
  if (options.locations == cl::BOU_TRUE || (options.locations == cl::BOU_UNSET && options.output != "-"))
    flags.enableDebugInfo(/*enable=*/true, /*prettyForm=*/false);
  module->print(file->os(), flags);
  file->os().flush();
  if (file->os().has_error()) {
    message = file->os().error().message();
    file->os().clear_error();
    return fail("cannot write '" + options.output + "': " + message);
  }
  file->keep();
  return 0;
}
