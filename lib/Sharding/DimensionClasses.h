//===- DimensionClasses.h - Dimensions that are one thing -------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The dimensions of all values of a program, up to what its operations say belongs together: the batch, the sequence,
// the heads, the hidden width of each MLP. A dimension is a list of classes, major to minor; where a reshape splits or
// merges one, so do all dimensions that it belongs to, wherever they are.
//
//   %q = dot_general %x, %wq : [B,S,C], [H*D,C] -> [B,S,H*D]     the weight's dimension 0 becomes [H, D],
//   %r = reshape %q          : [B,S,H*D] -> [B,S,H,D]            because of the reshape
//
// Invariants: the sizes of a dimension's classes multiply to its extent; classes of size 1 do not occur. Two lists that
// cannot be refined to a common one (2x3 against 3x2) are *tangled*: their classes are marked and are never sharded.
//
//===----------------------------------------------------------------------===//

#ifndef ND_LIB_SHARDING_DIMENSIONCLASSES_H
#define ND_LIB_SHARDING_DIMENSIONCLASSES_H

#include "nd/Dialect/ND/IR/ND.h"
#include "llvm/ADT/DenseMap.h"

namespace nd {

class DimensionClasses {
public:
  using Id = unsigned;
  using Ids = llvm::SmallVector<Id, 2>;

  /// Ties the dimensions of an operation's operands and results by its rule. Call it for all operations before asking.
  void add(mlir::Operation *op, const ShardingRule &rule);
  /// Two values of one shape that are the same tensor, such as a parameter and its new value.
  void tie(mlir::Value a, mlir::Value b);

  /// Classes of a dimension, major to minor.
  Ids getDim(mlir::Value value, int64_t dim) const;
  /// Classes of a factor of an operation that was added.
  Ids getFactor(mlir::Operation *op, unsigned factor) const;
  int64_t getSize(Id id) const { return nodes[id].size; }
  bool isTangled(Id id) const { return nodes[id].tangled; }

private:
  /// A class, the part of one that was merged away (parent is another), or one that was split in two.
  struct Node {
    int64_t size;
    mutable Id parent;
    Id major = 0, minor = 0; ///< the two parts of a split class; 0: not split (node 0 is no class)
    bool tangled = false;
  };

  Id create(int64_t size);
  Id find(Id id) const;
  void appendLeaves(Id id, Ids &leaves) const;
  Ids leavesOf(llvm::ArrayRef<Id> ids) const;
  void unify(llvm::ArrayRef<Id> a, llvm::ArrayRef<Id> b);
  void merge(Id a, Id b);
  /// Splits a class into a major part of that size and the rest.
  void split(Id id, int64_t majorSize);
  Id firstDimOf(mlir::Value value);

  std::vector<Node> nodes = {Node{1, 0}};
  llvm::DenseMap<mlir::Value, Id> values;           ///< node of dimension 0; those of the others follow
  llvm::DenseMap<mlir::Operation *, Id> operations; ///< node of factor 0; those of the others follow
};

} // namespace nd

#endif // ND_LIB_SHARDING_DIMENSIONCLASSES_H
