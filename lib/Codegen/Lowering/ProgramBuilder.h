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
  /// The buffer of a place, to be read or written by the operation that is emitted next: collectives in flight that
  /// would see it are waited for.
  enum class Access { Read, Write };
  mlir::Value bufferAt(const Place &place, mlir::RankedTensorType type, Access access = Access::Read);
  llvm::FailureOr<Place> locate(mlir::Value value);
  llvm::FailureOr<mlir::Value> read(mlir::Value value, Accepts accepts);
  llvm::FailureOr<mlir::Value> readAny(mlir::Value value);
  llvm::FailureOr<mlir::Value> readRows(mlir::Value value);
  llvm::FailureOr<mlir::Value> readContiguous(mlir::Value value);
  mlir::Value target(mlir::Value result);
  mlir::LogicalResult copy(const Place &from, const Place &to, mlir::RankedTensorType type);
  mlir::LogicalResult moveInto(mlir::Value value, const Place &place);
  struct Move {
    Place from, to;
    mlir::RankedTensorType type;
  };
  /// All at once: what some overwrite, others read before.
  mlir::LogicalResult moveAll(llvm::MutableArrayRef<Move> moves);

  // Operations.
  mlir::LogicalResult lowerBlock(mlir::Block &block);
  mlir::LogicalResult lower(mlir::Operation *op);
  mlir::LogicalResult lowerKernel(KernelOp op);
  mlir::LogicalResult lowerGemm(GemmOp op);
  mlir::LogicalResult lowerAttention(AttentionOp op);
  mlir::LogicalResult lowerAttentionGrad(AttentionGradOp op);
  mlir::LogicalResult lowerConcat(ConcatOp op);
  mlir::LogicalResult lowerAllReduce(AllReduceOp op);
  mlir::LogicalResult lowerAllSlice(AllSliceOp op);
  /// Any other collective: its operands are read where they are, and its results are no operand's memory.
  mlir::LogicalResult lowerCollective(llvm::ArrayRef<mlir::Operation *> ops, rt::CollectiveKind kind,
                                      mlir::ArrayAttr names, llvm::ArrayRef<int64_t> dims,
                                      llvm::ArrayRef<int64_t> permutation = {});
  mlir::LogicalResult lowerPermutes(llvm::ArrayRef<mlir::Operation *> permutes);
  mlir::LogicalResult lowerRepeat(RepeatOp op);
  mlir::LogicalResult finish();

  /// A collective in flight: it reads and writes storages until its wait.
  struct Pending {
    mlir::Value event;
    llvm::SmallVector<unsigned, 2> read, written;
  };
  void startCollective(mlir::Operation *op, rt::CollectiveKind kind, mlir::ArrayAttr names,
                       llvm::ArrayRef<mlir::Value> sources, llvm::ArrayRef<mlir::Value> targets, Pending storages,
                       llvm::ArrayRef<int64_t> dims = {}, llvm::ArrayRef<int64_t> permutation = {});
  llvm::FailureOr<mlir::Value> readForCollective(mlir::Value value, Pending &storages);
  void waitForAll();
  void waitBefore(unsigned storage, Access access);
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
  mlir::Operation *lastDeclaration = nullptr;
  llvm::DenseMap<unsigned, mlir::Value> buffers;
  llvm::DenseMap<std::pair<mlir::Value, mlir::Type>, mlir::Value> views;
  llvm::DenseMap<mlir::Value, Place> copies;
  llvm::SmallVector<Pending, 0> pending; ///< in the order of their starts
  llvm::DenseSet<mlir::Operation *> forward;
  bool hasBackward = false;
  std::optional<rt::Phase> phase;
};

} // namespace nd

#endif // ND_CODEGEN_LOWERING_PROGRAMBUILDER_H
