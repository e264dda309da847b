//===- BufferAssignment.h - Where each tensor value lives -------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Decides, for a function whose order of operations is final, which memory each value occupies. A value that is not a
// view (reshape, transpose, slice) is *placed*: in a storage of its own, or in a place that another value asks it to be
// written to:
//
//  - the tensor of the program that it is the new contents of,
//  - its part of a concatenation,
//  - the place of a result that is computed in place of it.
//
// A loop's carried values, what its body yields for them and its results share places. Its body is numbered in line,
// and what it reads from outside lives until its end.
//
// Places are decided from the last operation to the first, so that a value knows where its users want it.
//
// Invariant: of two values whose places may overlap, one is dead when the other is written. The exceptions are a
// concatenation and its parts, which are the same data, and a result computed in place of an operand that dies there.
//
//===----------------------------------------------------------------------===//

#ifndef ND_CODEGEN_LOWERING_BUFFERASSIGNMENT_H
#define ND_CODEGEN_LOWERING_BUFFERASSIGNMENT_H

#include "Views.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "nd/Dialect/ND/IR/ND.h"
#include "llvm/ADT/DenseMap.h"

namespace nd {

/// A row-major allocation: one of the program's tensors, constant data, or a temporary.
struct Storage {
  mlir::RankedTensorType type;
  /// Of a program's tensor: its index among the function's arguments, its results, or both when the step updates it.
  std::optional<unsigned> argument, result;
  mlir::Operation *constant = nullptr;
  /// The argument of a loop that is one row of an operand: this is no memory of its own.
  mlir::Value row = nullptr;

  bool isTensor() const { return argument || result; }
};

/// Elements of a storage.
struct Place {
  unsigned storage = 0;
  rt::Layout layout;
  /// Which parts of which concatenations this is, outermost first. Two places of a storage are
  /// disjoint exactly when their paths part at some point.
  llvm::SmallVector<std::pair<mlir::Operation *, unsigned>> path;

  bool mayOverlap(const Place &other) const;
  bool operator==(const Place &other) const {
    return storage == other.storage && layout == other.layout && path == other.path;
  }
  bool operator!=(const Place &other) const { return !(*this == other); }
};

class BufferAssignment {
public:
  explicit BufferAssignment(mlir::func::FuncOp function);

  llvm::ArrayRef<Storage> getStorages() const { return storages; }
  unsigned addTemporary(mlir::RankedTensorType type);
  /// The storage of the tensor that result `index` of the function is.
  unsigned getResultStorage(unsigned index) const { return resultStorages[index]; }

  /// Where a value is: its place, or its view of a place. Nothing for views that no layout expresses.
  std::optional<Place> find(mlir::Value value) const;
  /// The place of operand `index` within its concatenation.
  Place partOf(ConcatOp concat, unsigned index, const Place &whole) const;
  /// The place of a row-major value that fills a storage.
  Place wholeOf(unsigned storage) const;

private:
  using Order = int64_t;

  unsigned addStorage(Storage storage);
  void number(mlir::Block &block);
  void findLastReads();
  Order lastRead(mlir::Value value) const;
  /// When a value's place is first written; that of a loop's result is from the loop's start on.
  Order definedAt(mlir::Value value) const;
  void place(mlir::Value value, Place where);
  /// Asks that `value` be written to `where`. `inPlaceResult` is the result that is going to overwrite it there, if
  /// any.
  bool request(mlir::Value value, const Place &where, mlir::Value inPlaceResult = {});
  bool hasConflict(mlir::Value value, const Place &where, mlir::Value inPlaceResult) const;
  bool overwritesAtDefinition(mlir::Value value, const Place &where, mlir::Value dying) const;
  void assignBlock(mlir::Block &block);
  void assignLoop(RepeatOp loop);
  void assign(mlir::Operation *op);
  void offerOperands(mlir::OpResult result);
  rt::Layout chooseLayout(mlir::Value value) const;
  void placeTensors();

  mlir::func::FuncOp function;
  llvm::SmallVector<Storage> storages;
  llvm::SmallVector<unsigned> resultStorages;
  /// All operations in the order in which they run; null where a loop starts. A loop itself comes behind its body.
  std::vector<mlir::Operation *> sequence;
  llvm::SmallVector<RepeatOp> loops;
  llvm::DenseMap<mlir::Operation *, Order> order, loopStarts;
  llvm::DenseMap<mlir::Value, Order> lastReads;
  llvm::DenseMap<mlir::Value, Place> places;
  llvm::DenseMap<unsigned, llvm::SmallVector<mlir::Value>> occupants;
};

/// The value that a view is a view of, through any number of views.
mlir::Value rootOf(mlir::Value value);

/// Whether an operation can write its result `value` with this layout.
bool canWrite(mlir::Value value, const rt::Layout &layout);
/// How many copies the users of a value need when it has this layout, with a fraction for slow access.
double costOfLayout(mlir::Value value, const rt::Layout &layout);
/// Whether the product's library call can read a matrix with this layout.
bool isGemmOperand(llvm::ArrayRef<int64_t> shape, const rt::Layout &layout);

} // namespace nd

#endif // ND_CODEGEN_LOWERING_BUFFERASSIGNMENT_H
