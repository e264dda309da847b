//===- HostProgram.h - An rt program as emission reads it -------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_CODEGEN_HOST_HOSTPROGRAM_H
#define ND_CODEGEN_HOST_HOSTPROGRAM_H

#include "nd/Codegen/Kernels/KernelEmitter.h"
#include "nd/Dialect/RT/IR/RT.h"
#include "nd/Runtime/Core/ABI.h"
#include "nd/Support/Locations.h"
#include "llvm/ADT/DenseMap.h"

namespace nd {

/// A kernel's functions in the program's table, and how it is launched.
struct KernelLaunch {
  KernelPlan plan;
  int32_t function = 0, finishFunction = 0;
};

/// A planned module with one rt.program: what the step function, the tables and the manifest are made from.
class HostProgram {
public:
  /// Checks the module and plans its kernels. Emits an error and fails where something is missing or does not fit the
  /// ABI.
  static llvm::FailureOr<HostProgram> read(mlir::ModuleOp module);

  /// Emits every distinct kernel into `kernels`.
  mlir::LogicalResult emitKernels(mlir::ModuleOp kernels);

  int64_t numRanks();
  /// The mesh axes of these names, -1 behind them.
  std::array<int8_t, 4> axisIndices(std::optional<mlir::ArrayAttr> names);
  /// Ranks along these axes.
  int64_t groupSize(mlir::ArrayAttr names);
  /// Positions in the mesh, in the order of the names.
  llvm::SmallVector<int64_t> axisPositions(mlir::ArrayAttr names);

  mlir::ModuleOp module;
  rt::ProgramOp program;
  MeshOp mesh; ///< null: one rank
  llvm::SmallVector<rt::TensorOp> tensors;
  llvm::SmallVector<rt::CollectiveStartOp> collectives;
  llvm::SmallVector<std::string> kernelFunctions; ///< names without the CPU level
  llvm::DenseMap<mlir::StringAttr, KernelLaunch> kernels;
  int64_t threadScratchBytes = 0;

private:
  mlir::LogicalResult readTensors();
  mlir::LogicalResult checkStorage(rt::TensorOp tensor, int64_t dim);
  mlir::LogicalResult planKernels();

  struct Function {
    KernelSpec spec;
    KernelPlan plan;
    std::string name;
  };
  llvm::SmallVector<Function, 0> functions;
};

/// The ABI's number of an element type; nothing when it has none.
std::optional<nd_dtype> abiType(mlir::Type elementType);
/// The manifest's name of an element type.
llvm::StringRef dtypeName(mlir::Type elementType);

/// Strides of operands, sizes and flags; `id`, `location` and mesh axes are left out. Lists point into attributes.
nd_attention_desc describe(rt::AttentionOp op);
nd_attention_desc describe(rt::AttentionGradOp op);
nd_gemm_desc describe(rt::GemmOp op);

/// How the parts of each operand lie, in a group of `ranks`.
llvm::SmallVector<nd_collective_operand> describeOperands(rt::CollectiveStartOp op, int64_t ranks);
nd_collective_operand describeOperand(rt::AllSliceOp op, int64_t ranks);

} // namespace nd

#endif // ND_CODEGEN_HOST_HOSTPROGRAM_H
