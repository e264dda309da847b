//===- DimensionFlow.h - What a rank's dimensions are -----------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// What every dimension of every value of a rank's program is: the batch, the sequence, the vocabulary, or nothing that
// matters. By structure: kinds of arguments' dimensions go along with the operations, into kernels and loops too, and
// sizes that are equal by chance mean nothing.
//
// A dimension is a list of *pieces*, major to minor, each of a class; operations that merge tokens (a reshape in front
// of a product) join pieces in one dimension, and others split them again. Ranks' shards grow and shrink on the way
// (collectives, slices, pads), so a class has no size; its pieces have.
//
//   %x : tensor<4x16x64xf32>                      [batch 4] [sequence 16] [hidden 64]
//   %t = nd.reshape %x -> tensor<64x64xf32>       [batch 4, sequence 16] [hidden 64]
//   %l = nd.gemm %t, %w -> tensor<64x256xf32>     [batch 4, sequence 16] [vocabulary 256]
//
// Classes are of two sorts:
//
//   - *bound*: the dimension comes from an argument's. Operations that relate two make them one class (union-find).
//   - *free*: an operation made the dimension from nothing (a constant, a broadcast). Two uses of such a value may mean
//     two things (zeros of the width of the vocabulary and of an MLP that is as wide are one value after CSE), so a
//     free class is whatever its uses say, but tells none of them about the other.
//
// Invariants: extents of a dimension's pieces multiply to its size; pieces of extent 1 do not occur. Where a reshape
// cannot be followed (2x3 against 3x2) the pieces become new classes of no kind.
//
//===----------------------------------------------------------------------===//

#ifndef ND_LIB_MEMORY_DIMENSIONFLOW_H
#define ND_LIB_MEMORY_DIMENSIONFLOW_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "nd/Dialect/ND/IR/ND.h"
#include "llvm/ADT/BitmaskEnum.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/IntEqClasses.h"

namespace nd {

LLVM_ENABLE_BITMASK_ENUMS_IN_NAMESPACE();

enum class DimensionKind : uint8_t {
  None = 0,
  Batch = 1,
  Sequence = 2,
  Vocabulary = 4,
  LLVM_MARK_AS_BITMASK_ENUM(Vocabulary)
};

class DimensionFlow {
public:
  struct Piece {
    unsigned id;  ///< of its class
    unsigned dim; ///< of the tensor
    int64_t extent;
    bool isPart; ///< a reshape has split the dimension that it comes from
  };
  using Pieces = llvm::ArrayRef<Piece>;

  /// Follows a function from its arguments on: inputs of integers [batch, sequence, ...], by the sizes that `nd.model`
  /// names, or with `nd.sequence`, and weights with `nd.vocabulary`.
  explicit DimensionFlow(mlir::func::FuncOp function);

  /// Tokens of a rank, in one microbatch; 1 where no input has any.
  int64_t getTokens() const { return tokens; }
  /// The longest sequence of the inputs, of all ranks.
  int64_t getLongest() const { return longest; }

  Pieces get(mlir::Value value) const;
  DimensionKind getKind(const Piece &piece) const { return classes[leaderOf(piece.id)].kind; }
  /// Whether the dimension comes from an argument's.
  bool isBound(const Piece &piece) const { return !classes[piece.id].isFree; }

private:
  using Buffer = llvm::SmallVector<Piece, 8>;
  struct Class {
    DimensionKind kind = DimensionKind::None;
    bool isFree = false;
    unsigned firstUse = 0; ///< of a free class: in `uses`; 0: none
  };
  /// A free class is what this class is, which is bound or was made later.
  struct Use {
    unsigned user;
    unsigned next;
  };
  struct Range {
    unsigned begin, size;
  };

  unsigned leaderOf(unsigned id) const { return relations.findLeader(id); }
  unsigned create(bool isFree);
  void mark(mlir::BlockArgument argument);
  void mark(mlir::BlockArgument argument, int64_t dim, DimensionKind kind);
  int64_t shardsOf(mlir::BlockArgument argument, int64_t dim);
  Piece unknown(unsigned dim, int64_t extent) { return {create(/*isFree=*/false), dim, extent, true}; }
  void set(mlir::Value value, Pieces pieces);
  void alias(mlir::Value value, mlir::Value same) { values[value] = values.lookup(same); }
  /// New classes for all dimensions.
  void introduce(mlir::Value value, bool isFree);

  /// The same dimension in a result.
  Piece carry(Piece piece);
  Piece meet(Piece a, Piece b);
  /// One list of pieces for two lists of the same extent; dimensions are those of `a`.
  Buffer join(Pieces a, Pieces b);
  void tie(mlir::Value a, int64_t dim, mlir::Value b, int64_t otherDim);
  Buffer piecesOf(mlir::Value value, int64_t dim) const;
  /// Deals pieces out to dimensions of these sizes, splitting where needed; `dim` counts the sizes.
  Buffer regroup(Pieces pieces, llvm::ArrayRef<int64_t> sizes);
  /// A dimension of `size` that was cut out of, or put together from, dimensions like this one.
  Buffer resize(Pieces pieces, unsigned dim, int64_t size);

  void visit(mlir::Block &block);
  void visit(mlir::Operation *op);
  void visitElementwise(mlir::Operation *op);
  void visitByRule(mlir::Operation *op, const ShardingRule &rule);
  void visitGemm(GemmOp op);
  void visitRepeat(RepeatOp op);
  void visitConcat(ConcatOp op);
  Buffer concatenate(ConcatOp op, int64_t dim, int64_t size);
  void visitAttention(mlir::Operation *op);
  /// Equal dimensions are carried over, those in which the sizes differ are resized.
  void resizeInto(mlir::Value operand, mlir::Value result);
  /// Kinds go from uses to the free classes that they use.
  void resolve();

  mlir::func::FuncOp function;
  mlir::ModuleOp module;
  int64_t tokens = 1, longest = 1;
  llvm::IntEqClasses relations; ///< of bound classes; a free one is alone
  std::vector<Class> classes;
  std::vector<Use> uses = {{0, 0}};
  std::vector<Piece> pieces;
  llvm::DenseMap<mlir::Value, Range> values;
};

} // namespace nd

#endif // ND_LIB_MEMORY_DIMENSIONFLOW_H
