//===- StepFunction.h - The function that becomes the step ------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_LIB_TRAINING_STEPFUNCTION_H
#define ND_LIB_TRAINING_STEPFUNCTION_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace nd {

/// The loss is sum / count; both are 0-d tensors.
struct StepLoss {
  mlir::Value sum, count;
};

/// A result of the step, with its `nd.kind` and `nd.name` (absent where empty).
struct StepResult {
  mlir::Value value;
  llvm::StringRef kind, name;
};

/// `@forward` with a body of one block; an error that says what is missing otherwise.
mlir::FailureOr<mlir::func::FuncOp> getForward(mlir::ModuleOp module);

mlir::func::ReturnOp getReturn(mlir::func::FuncOp function);

std::optional<unsigned> findResultOfKind(mlir::func::FuncOp function, llvm::StringRef kind);

/// Makes `results` all that the function returns. Its arguments may have been changed before: the function's type is
/// brought up to date.
void setResults(mlir::func::FuncOp function, llvm::ArrayRef<StepResult> results);

} // namespace nd

#endif // ND_LIB_TRAINING_STEPFUNCTION_H
