//===- ProgramBuilder.h - Emits the rt program of a function ----*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_CODEGEN_LOWERING_PROGRAMBUILDER_H
#define ND_CODEGEN_LOWERING_PROGRAMBUILDER_H

#include "BufferAssignment.h"
#include "KernelTable.h"
#include "llvm/ADT/MapVector.h"

namespace nd {

/// Walks a function once, in order, and emits what runs on the places that a BufferAssignment chose, with copies where
/// a value is not where or how its user needs it. Copies are made right before the first reader.
class ProgramBuilder {
public:
  ProgramBuilder(mlir::func::FuncOp function, KernelTable &kernels);
  /// Emits the program before the function.
  mlir::LogicalResult build();

private:
  using Accepts = llvm::function_ref<bool(llvm::ArrayRef<int64_t>, const rt::Layout &)>;

  // Memory.
  mlir::LogicalResult declareTensor(unsigned storage);
  mlir::Value bufferOf(unsigned storage);
  mlir::Value bufferAt(const Place &place, mlir::RankedTensorType type);
  llvm::FailureOr<Place> locate(mlir::Value value);
  llvm::FailureOr<mlir::Value> read(mlir::Value value, Accepts accepts);
  llvm::FailureOr<mlir::Value> readAny(mlir::Value value);
  llvm::FailureOr<mlir::Value> readRows(mlir::Value value);
  llvm::FailureOr<mlir::Value> readContiguous(mlir::Value value);
  mlir::Value target(mlir::Value result);
  mlir::LogicalResult copy(const Place &from, const Place &to, mlir::RankedTensorType type);
  mlir::LogicalResult moveInto(mlir::Value value, const Place &place);

  // Operations.
  mlir::LogicalResult lower(mlir::Operation *op);
  mlir::LogicalResult lowerKernel(KernelOp op);
  mlir::LogicalResult lowerGemm(GemmOp op);
  mlir::LogicalResult lowerAttention(AttentionOp op);
  mlir::LogicalResult lowerAttentionGrad(AttentionGradOp op);
  mlir::LogicalResult lowerConcat(ConcatOp op);
  mlir::LogicalResult lowerAllReduce(AllReduceOp op);
  mlir::LogicalResult lowerAllGather(AllGatherOp op);
  mlir::LogicalResult lowerReduceScatter(ReduceScatterOp op);
  mlir::LogicalResult finish();

  void startCollective(rt::CollectiveKind kind, ReductionKind reduction, mlir::Value source, mlir::Value target,
                       mlir::ArrayAttr axes, mlir::StringRef name, mlir::StringRef reason, unsigned pendingStorage,
                       bool isScalar);
  void waitFor(unsigned storage);
  void enterPhase(mlir::Operation *op);
  void setPhase(rt::Phase next);
  void findForward();

  mlir::func::FuncOp function;
  KernelTable &kernels;
  BufferAssignment assignment;
  mlir::OpBuilder builder;
  mlir::Location loc;
  rt::ProgramOp program;
  /// Where named tensors, constants and temporaries are declared: at the start of the program, in order of first use.
  mlir::OpBuilder declarations;
  llvm::DenseMap<unsigned, mlir::Value> buffers;
  llvm::DenseMap<std::pair<mlir::Value, mlir::Type>, mlir::Value> views;
  llvm::DenseMap<mlir::Value, Place> copies;
  /// Collectives in flight, by the storage that they write.
  llvm::MapVector<unsigned, mlir::Value> pending;
  llvm::DenseSet<mlir::Operation *> forward;
  bool hasBackward = false;
  std::optional<rt::Phase> phase;
};

} // namespace nd

#endif // ND_CODEGEN_LOWERING_PROGRAMBUILDER_H
