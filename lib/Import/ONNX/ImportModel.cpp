//===- ImportModel.cpp - The whole import ---------------------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "nd/Import/ONNX/ImportModel.h"
#include "nd/Import/ONNX/Passes.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace nd::onnx;

void nd::onnx::addImportPasses(OpPassManager &pm) {
  pm.addPass(createNDConvertOnnx());
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  pm.addPass(createNDRecoverComposites());
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  pm.addPass(createNDFinishImport());
}

OwningOpRef<ModuleOp> nd::onnx::importModel(const ImportOptions &options, MLIRContext *context) {
  OwningOpRef<ModuleOp> module = importVerbatim(options, context);
  if (!module)
    return {};
  PassManager pm(context);
  addImportPasses(pm);
  if (failed(pm.run(*module)))
    return {};
  return module;
}
