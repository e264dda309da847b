//===- ObjectEmitter.cpp - From MLIR to an object file --------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The vector code that kernels are made of is explicit, so LLVM's loop and SLP vectorisers and its unroller stay off:
// they made kernels slower and compile time half again as long.
//
//===----------------------------------------------------------------------===//

#include "nd/Codegen/Host/ObjectEmitter.h"

#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Index/IR/IndexDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Object/ObjectFile.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Host.h"

using namespace mlir;
using namespace nd;

namespace {

llvm::Error stringError(const llvm::Twine &message) { return llvm::createStringError(message.str()); }

void buildPipeline(PassManager &manager) {
  ConvertVectorToLLVMPassOptions vectorOptions;
  vectorOptions.reassociateFPReductions = true;
  vectorOptions.force32BitVectorIndices = true;
  manager.addPass(createConvertVectorToSCFPass());
  manager.addPass(createSCFToControlFlowPass());
  manager.addPass(createConvertVectorToLLVMPass(vectorOptions));
  manager.addPass(createConvertMathToLLVMPass());
  manager.addPass(createConvertMathToLibmPass());
  manager.addPass(createArithToLLVMConversionPass());
  manager.addPass(createFinalizeMemRefToLLVMConversionPass());
  manager.addPass(createConvertFuncToLLVMPass());
  manager.addPass(createConvertControlFlowToLLVMPass());
  manager.addPass(createConvertIndexToLLVMPass());
  manager.addPass(createReconcileUnrealizedCastsPass());
}

std::unique_ptr<llvm::TargetMachine> createMachine(CpuLevel level, std::string &error) {
  llvm::InitializeNativeTarget();
  llvm::InitializeNativeTargetAsmPrinter();
  llvm::Triple triple(llvm::sys::getDefaultTargetTriple());
  const llvm::Target *target = llvm::TargetRegistry::lookupTarget(triple, error);
  if (!target)
    return nullptr;
  return std::unique_ptr<llvm::TargetMachine>(
      target->createTargetMachine(triple, level == CpuLevel::V4 ? "x86-64-v4" : "x86-64-v3", "", llvm::TargetOptions(),
                                  llvm::Reloc::PIC_, std::nullopt, llvm::CodeGenOptLevel::Default));
}

/// x86-64-v4 prefers 256-bit vectors by default, which costs up to a quarter of a kernel's speed.
void prepareFunctions(llvm::Module &module, CpuLevel level, llvm::StringRef suffix) {
  for (llvm::Function &function : module) {
    if (function.isDeclaration())
      continue;
    if (!suffix.empty())
      function.setName(function.getName() + suffix);
    function.addFnAttr("prefer-vector-width", level == CpuLevel::V4 ? "512" : "256");
    function.addFnAttr("min-legal-vector-width", level == CpuLevel::V4 ? "512" : "256");
    function.addFnAttr("denormal-fp-math", "preserve-sign,preserve-sign");
    function.addFnAttr(llvm::Attribute::NoUnwind);
  }
}

void optimize(llvm::Module &module, llvm::TargetMachine &machine) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  llvm::PipelineTuningOptions tuning;
  tuning.LoopUnrolling = tuning.LoopVectorization = tuning.SLPVectorization = tuning.LoopInterleaving = false;
  llvm::PassBuilder builder(&machine, tuning);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O2).run(module, modules);
}

/// Helpers of a compiler (`__truncsfbf2` and the like) are in no library that a rank links.
llvm::Error checkUndefined(llvm::StringRef bytes) {
  auto object = llvm::object::ObjectFile::createObjectFile(llvm::MemoryBufferRef(bytes, "object"));
  if (!object)
    return object.takeError();
  for (const llvm::object::SymbolRef &symbol : (*object)->symbols()) {
    llvm::Expected<uint32_t> flags = symbol.getFlags();
    if (!flags)
      return flags.takeError();
    llvm::Expected<llvm::StringRef> name = symbol.getName();
    if (!name)
      return name.takeError();
    if ((*flags & llvm::object::SymbolRef::SF_Undefined) && name->starts_with("__"))
      return stringError("generated code calls '" + *name +
                         "', which no library of a rank has: an operation's type is not supported by this CPU level");
  }
  return llvm::Error::success();
}

} // namespace

llvm::StringRef nd::cpuLevelSuffix(CpuLevel level) { return level == CpuLevel::V4 ? "_v4" : "_v3"; }

void nd::registerObjectEmission(DialectRegistry &registry) {
  registry
      .insert<arith::ArithDialect, cf::ControlFlowDialect, func::FuncDialect, index::IndexDialect, LLVM::LLVMDialect,
              math::MathDialect, memref::MemRefDialect, scf::SCFDialect, vector::VectorDialect>();
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
}

llvm::Error nd::emitObject(ModuleOp module, CpuLevel level, llvm::StringRef path, llvm::StringRef suffix) {
  OwningOpRef<ModuleOp> clone(module.clone());
  PassManager manager(module.getContext());
  manager.enableVerifier(false);
  buildPipeline(manager);
  if (failed(manager.run(*clone)))
    return stringError("lowering to the LLVM dialect failed");

  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> translated = translateModuleToLLVMIR(*clone, context);
  if (!translated)
    return stringError("translation to LLVM IR failed");
  std::string error;
  std::unique_ptr<llvm::TargetMachine> machine = createMachine(level, error);
  if (!machine)
    return stringError("no code generator for this machine: " + error);
  translated->setTargetTriple(machine->getTargetTriple());
  translated->setDataLayout(machine->createDataLayout());
  prepareFunctions(*translated, level, suffix);
  optimize(*translated, *machine);

  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager codegen;
  if (machine->addPassesToEmitFile(codegen, stream, nullptr, llvm::CodeGenFileType::ObjectFile))
    return stringError("the code generator cannot write object files");
  codegen.run(*translated);
  llvm::StringRef object(bytes.data(), bytes.size());
  if (llvm::Error undefined = checkUndefined(object))
    return undefined;

  std::error_code code;
  llvm::raw_fd_ostream file(path, code);
  if (code)
    return stringError("cannot write '" + path + "': " + code.message());
  file << object;
  file.close();
  if (file.has_error()) {
    code = file.error();
    file.clear_error();
    return stringError("cannot write '" + path + "': " + code.message());
  }
  return llvm::Error::success();
}
