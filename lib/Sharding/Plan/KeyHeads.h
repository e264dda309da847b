//===- KeyHeads.h - Which kv heads a rank stores ----------------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Where the ranks along the tensor axes cut through groups of query heads, ranks store the kv heads that their query
// heads use: 6 query heads that read 2 kv heads, on 3 ranks of 2 slots each:
//
//   rank 0: queries 0 1, kv 0 -       rank 1: queries 2 3, kv 0 1       rank 2: queries 4 5, kv - 1
//
// Invariants: query heads are contiguous, so the kv heads of a rank are consecutive; kv head h lies in slot h % slots
// of every rank that stores it, and slots are the most that any rank uses.
//
//===----------------------------------------------------------------------===//

#ifndef ND_LIB_SHARDING_PLAN_KEYHEADS_H
#define ND_LIB_SHARDING_PLAN_KEYHEADS_H

#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"

namespace nd {

struct KeyHeads {
  int64_t queries, keys, ranks;

  /// Whether some kv head is stored by several ranks, but not by equally many each: those that are, a part of the
  /// tensor axis holds (TensorPlan).
  bool areShared() const;

  int64_t ownQueries() const { return (queries + ranks - 1) / ranks; }
  int64_t group() const { return queries / keys; }
  int64_t slots() const;
  /// The kv head in each slot of each rank; -1: unused.
  llvm::SmallVector<llvm::SmallVector<int64_t>> table() const;
  /// For each query head of all ranks, with padding, the slot of all ranks that it reads; -1: padding. A single kv head
  /// is whole on every rank.
  llvm::SmallVector<int64_t> queryMap() const;
};

/// A dimension of heads as its shards store it: what `nd.copies` says, for shards of any size.
struct StoredHeads {
  int64_t dim, unit;                                   ///< elements of a head
  llvm::SmallVector<llvm::SmallVector<int64_t>> table; ///< the head in each slot of each rank; -1: none

  static StoredHeads read(mlir::DictionaryAttr copies);
  mlir::DictionaryAttr toAttr(mlir::MLIRContext *context) const;

  int64_t ranks() const { return table.size(); }
  int64_t slots() const { return table.front().size(); }
  int64_t heads() const;
  /// The head's element at a place of a rank; -1 in unused slots, and behind all slots, where there may be padding.
  int64_t elementAt(int64_t rank, int64_t place) const;
  /// `nd.copies` of a dimension of `size` elements that is cut into `shards`.
  mlir::DictionaryAttr cut(mlir::MLIRContext *context, int64_t size, int64_t shards) const;
};

} // namespace nd

#endif // ND_LIB_SHARDING_PLAN_KEYHEADS_H
