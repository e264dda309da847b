//===- StageDump.cpp - The IR after each pass, as files --------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "nd/Support/StageDump.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassInstrumentation.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/WithColor.h"

using namespace mlir;

namespace {

class StageDump : public PassInstrumentation {
public:
  explicit StageDump(StringRef folder) : folder(folder.str()) {}

  void runBeforePass(Pass *pass, Operation *op) override {
    if (next == 0 && !isAdaptor(pass))
      write("input", op);
  }
  void runAfterPass(Pass *pass, Operation *op) override {
    if (!isAdaptor(pass))
      write(pass->getArgument(), op);
  }
  void runAfterPassFailed(Pass *pass, Operation *op) override {
    if (!isAdaptor(pass))
      write((pass->getArgument() + "-failed").str(), op);
  }

private:
  /// Adaptors run the passes nested in them, which are written one by one.
  static bool isAdaptor(Pass *pass) { return pass->getArgument().empty(); }

  void write(StringRef name, Operation *op) {
    if (auto module = op->getParentOfType<ModuleOp>())
      op = module;
    std::string path = llvm::formatv("{0}/{1,0+2}-{2}.mlir", folder, next++, name);
    std::error_code error;
    llvm::raw_fd_ostream out(path, error);
    if (error) {
      llvm::WithColor::warning() << "cannot write " << path << ": " << error.message() << "\n";
      return;
    }
    op->print(out, OpPrintingFlags().useLocalScope());
    out << "\n";
    out.flush();
    if (out.has_error())
      llvm::WithColor::warning() << "cannot write " << path << ": " << out.error().message() << "\n";
    out.clear_error();
  }

  std::string folder;
  int next = 0;
};

} // namespace

llvm::Error nd::dumpStages(PassManager &pm, StringRef folder) {
  if (std::error_code error = llvm::sys::fs::create_directories(folder))
    return llvm::createStringError("cannot create " + folder.str() + ": " + error.message());
  pm.addInstrumentation(std::make_unique<StageDump>(folder));
  return llvm::Error::success();
}
