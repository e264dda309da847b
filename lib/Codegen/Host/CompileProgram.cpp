//===- CompileProgram.cpp - From rt to a program folder --------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "nd/Codegen/Host/CompileProgram.h"
#include "Linker.h"
#include "Manifest.h"
#include "StepEmitter.h"
#include "mlir/Bytecode/BytecodeWriter.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Parser/Parser.h"
#include "nd/Codegen/Host/ObjectEmitter.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Host.h"

#include <thread>

using namespace mlir;
using namespace nd;

namespace {

constexpr StringLiteral kExecutable = "rank0";

llvm::Error stringError(const Twine &message) { return llvm::createStringError(message.str()); }
/// For errors that are diagnostics already.
llvm::Error reported(StringRef what) { return stringError(what + Twine(" failed; see the messages above")); }

/// The step function is calls with constant arguments: the baseline CPU and little optimization do.
llvm::Error emitStepObject(HostProgram &host, StringRef path) {
  llvm::InitializeNativeTarget();
  llvm::InitializeNativeTargetAsmPrinter();
  std::string message;
  llvm::Triple triple(llvm::sys::getDefaultTargetTriple());
  const llvm::Target *target = llvm::TargetRegistry::lookupTarget(triple, message);
  if (!target)
    return stringError("this LLVM has no back end for " + triple.str() + ": " + message);
  std::unique_ptr<llvm::TargetMachine> machine(target->createTargetMachine(
      triple, "x86-64", "", llvm::TargetOptions(), llvm::Reloc::PIC_, std::nullopt, llvm::CodeGenOptLevel::Less));
  llvm::LLVMContext context;
  llvm::Module module("step", context);
  module.setTargetTriple(triple);
  module.setDataLayout(machine->createDataLayout());
  module.setPICLevel(llvm::PICLevel::BigPIC);
  module.setPIELevel(llvm::PIELevel::Large);
  if (failed(emitStep(host, module)))
    return reported("emitting the step function");
  std::error_code error;
  llvm::raw_fd_ostream out(path, error);
  if (error)
    return stringError("cannot write " + path + ": " + error.message());
  llvm::legacy::PassManager passes;
  if (machine->addPassesToEmitFile(passes, out, nullptr, llvm::CodeGenFileType::ObjectFile))
    return stringError("this LLVM cannot write object files for " + triple.str());
  passes.run(module);
  out.close();
  if (out.has_error())
    return stringError("cannot write " + path + ": " + out.error().message());
  return llvm::Error::success();
}

/// Kernels are emitted in these.
void loadKernelDialects(MLIRContext &context) {
  context.loadDialect<arith::ArithDialect, func::FuncDialect, LLVM::LLVMDialect, math::MathDialect, scf::SCFDialect,
                      vector::VectorDialect>();
}

/// The objects of both CPU levels, side by side. `objects` gets their paths.
llvm::Error emitKernelObjects(HostProgram &host, StringRef folder, SmallVectorImpl<std::string> &objects) {
  if (host.kernelFunctions.empty())
    return llvm::Error::success();
  loadKernelDialects(*host.module.getContext());
  OwningOpRef<ModuleOp> kernels = ModuleOp::create(host.module.getLoc());
  if (failed(host.emitKernels(*kernels)))
    return reported("emitting kernels");
  constexpr CpuLevel levels[] = {CpuLevel::V3, CpuLevel::V4};
  std::string errors[2];
  auto compile = [&](int index, ModuleOp module) {
    StringRef suffix = cpuLevelSuffix(levels[index]);
    std::string path = (folder + "/kernels" + suffix + ".o").str();
    if (llvm::Error error = emitObject(module, levels[index], path, suffix))
      errors[index] = toString(std::move(error));
  };
  // Two pass managers cannot run in one context: the other thread has a copy in a context of its own.
  std::string copy;
  llvm::raw_string_ostream copyStream(copy);
  if (failed(writeBytecodeToFile(*kernels, copyStream)))
    return stringError("cannot copy the module of kernels");
  auto compileCopy = [&] {
    MLIRContext context(host.module.getContext()->getDialectRegistry(), MLIRContext::Threading::DISABLED);
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(copy, &context);
    if (module)
      compile(1, *module);
    else
      errors[1] = "cannot read the copy of the module of kernels";
  };
  std::thread other(compileCopy);
  compile(0, *kernels);
  other.join();
  for (int index : {0, 1}) {
    if (!errors[index].empty())
      return stringError(errors[index]);
    objects.push_back((folder + "/kernels" + cpuLevelSuffix(levels[index]) + ".o").str());
  }
  return llvm::Error::success();
}

/// Writes through a neighbour file, so that a reader sees the old or the new contents.
llvm::Error writeFile(const Twine &path, llvm::function_ref<void(llvm::raw_ostream &)> write) {
  std::string temporary = (path + ".tmp").str();
  std::error_code error;
  llvm::raw_fd_ostream out(temporary, error);
  if (!error) {
    write(out);
    out.close();
    error = out.error();
    out.clear_error();
  }
  if (!error)
    error = llvm::sys::fs::rename(temporary, path);
  if (error)
    return stringError("cannot write " + path + ": " + error.message());
  return llvm::Error::success();
}

} // namespace

llvm::Error nd::compileHostProgram(ModuleOp module, const HostCompileOptions &options) {
  FailureOr<HostProgram> host = HostProgram::read(module);
  if (failed(host))
    return reported("reading the rt program");
  if (std::error_code error = llvm::sys::fs::create_directories(options.outputFolder))
    return stringError("cannot create " + options.outputFolder + ": " + error.message());
  // A relative prefix would be taken for one in the system's folder of temporary files.
  SmallString<128> prefix(options.outputFolder), build;
  llvm::sys::fs::make_absolute(prefix);
  llvm::sys::path::append(prefix, "build");
  if (std::error_code error = llvm::sys::fs::createUniqueDirectory(prefix, build))
    return stringError("cannot write into " + options.outputFolder + ": " + error.message());

  auto compile = [&]() -> llvm::Error {
    SmallVector<std::string> objects{(build + "/step.o").str()};
    if (llvm::Error error = emitStepObject(*host, objects.front()))
      return error;
    options.progress("step function");
    if (llvm::Error error = emitKernelObjects(*host, build, objects))
      return error;
    options.progress("kernels");
    std::string executable = (build + "/" + kExecutable).str();
    if (llvm::Error error = linkExecutable(objects, options.runtimeFolder, executable))
      return error;
    options.progress("link");
    uint64_t bytes = 0;
    if (std::error_code error = llvm::sys::fs::file_size(executable, bytes))
      return stringError("cannot read " + executable + ": " + error.message());
    std::string folder = options.outputFolder;
    if (std::error_code error = llvm::sys::fs::rename(executable, folder + "/" + kExecutable.str()))
      return stringError("cannot write " + folder + "/" + kExecutable + ": " + error.message());
    if (options.keepObjects)
      for (const std::string &object : objects)
        (void)llvm::sys::fs::rename(object, folder + "/" + llvm::sys::path::filename(object).str());
    return writeFile(folder + "/manifest.json",
                     [&](llvm::raw_ostream &out) { writeManifest(*host, "host", kExecutable, bytes, out); });
  };
  llvm::Error error = compile();
  (void)llvm::sys::fs::remove_directories(build);
  return error;
}
