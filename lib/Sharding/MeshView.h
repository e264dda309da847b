//===- MeshView.h - Between attributes and plain shardings ------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_LIB_SHARDING_MESHVIEW_H
#define ND_LIB_SHARDING_MESHVIEW_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "nd/Sharding/FactorSharding.h"

namespace nd {

/// A mesh as the algorithms use it: axes by position. Axes of size 1 shard nothing: plans leave them out.
class MeshView {
public:
  explicit MeshView(MeshOp mesh);

  MeshSizes getSizes() const { return sizes; }
  mlir::FlatSymbolRefAttr getSymbol() const { return symbol; }
  mlir::StringAttr getName(unsigned axis) const { return names[axis]; }
  AxisRole getRole(unsigned axis) const { return roles[axis]; }
  /// `dp+fsdp`, for messages.
  std::string str(llvm::ArrayRef<unsigned> axes) const;
  mlir::ArrayAttr toArray(llvm::ArrayRef<unsigned> axes) const;

  ShardingAttr toAttr(const TensorSharding &sharding) const;
  /// The plain form, after checks that `attr` fits the mesh and a tensor of this shape: the axes exist and divide.
  /// `tensor` names the tensor in errors.
  mlir::FailureOr<TensorSharding> fromAttr(ShardingAttr attr, llvm::ArrayRef<int64_t> shape, llvm::StringRef tensor,
                                           llvm::function_ref<mlir::InFlightDiagnostic()> emitError) const;
  /// The same without a tensor: only that the axes exist.
  mlir::FailureOr<TensorSharding> fromAxes(ShardingAttr attr, llvm::StringRef tensor,
                                           llvm::function_ref<mlir::InFlightDiagnostic()> emitError) const;
  mlir::FailureOr<AxisList> axesOf(mlir::ArrayAttr names, llvm::function_ref<mlir::InFlightDiagnostic()> emitError,
                                   llvm::StringRef tensor = "") const;
  /// The sharding that `nd.sharding` says of an argument of `function`, checked.
  mlir::FailureOr<TensorSharding> fromArgument(mlir::func::FuncOp function, mlir::BlockArgument argument) const;
  /// The sharding in a value's type, checked; errors are emitted at `op`.
  mlir::FailureOr<TensorSharding> fromType(mlir::Value value, mlir::Operation *op) const;

  /// Lists of axes, as `nd.factor_axes` has them.
  mlir::ArrayAttr toLists(llvm::ArrayRef<AxisList> lists) const;
  mlir::FailureOr<FactorAxes> readLists(mlir::ArrayAttr lists,
                                        llvm::function_ref<mlir::InFlightDiagnostic()> emitError) const;

  /// The shape of a rank's shard.
  llvm::SmallVector<int64_t> localShape(llvm::ArrayRef<int64_t> shape, const TensorSharding &sharding) const;

private:
  mlir::FlatSymbolRefAttr symbol;
  llvm::SmallVector<int64_t> sizes;
  llvm::SmallVector<mlir::StringAttr> names;
  llvm::SmallVector<AxisRole> roles;
};

} // namespace nd

#endif // ND_LIB_SHARDING_MESHVIEW_H
