//===- Program.h - The function that is sharded -----------------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_LIB_SHARDING_PROGRAM_H
#define ND_LIB_SHARDING_PROGRAM_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "nd/Dialect/ND/IR/ND.h"

namespace nd {

/// The one function of a module, straight-line code on ranked tensors, with its mesh (null where there is none).
struct Program {
  mlir::func::FuncOp function;
  MeshOp mesh;

  mlir::Block &getBody() { return function.getBody().front(); }
  mlir::Operation *getReturn() { return getBody().getTerminator(); }

  /// Fails with an error where the module is not of that form.
  static mlir::FailureOr<Program> get(mlir::ModuleOp module);
  /// The same, where passes that come before must have left a mesh.
  static mlir::FailureOr<Program> getWithMesh(mlir::ModuleOp module);
};

/// The rule of an operation; an error that names the operation when it has none.
mlir::FailureOr<ShardingRule> getShardingRule(mlir::Operation *op);

/// `argument 'input_ids'`, `result 'loss'`: how messages call a value.
std::string describe(mlir::Value value);
std::string describeArgument(mlir::func::FuncOp function, unsigned index);
std::string describeResult(mlir::func::FuncOp function, unsigned index);

} // namespace nd

#endif // ND_LIB_SHARDING_PROGRAM_H
