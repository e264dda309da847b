//===- ShardingRule.h - How an operation's dimensions relate ----*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_DIALECT_ND_IR_SHARDINGRULE_H
#define ND_DIALECT_ND_IR_SHARDINGRULE_H

#include "llvm/ADT/SmallVector.h"
#include <cstdint>
#include <string>

namespace nd {

enum class ReductionKind : uint32_t;

/// What sharding a factor does to the operation.
enum class FactorKind {
  /// The operation runs on shards unchanged; results carry the factor.
  PassThrough,
  /// The operation runs on shards and its results are partial: unreduced over the axes of the factor.
  Reduction,
  /// The operation needs the whole dimension: its axes are gathered first.
  NeedReplication,
};

/// A name for an extent that several dimensions of an operation share.
struct Factor {
  int64_t size;
  FactorKind kind;
  ReductionKind reduction{}; ///< how partial results are combined, of a Reduction factor
};

/// One rule per operation: each dimension of each operand and result is a product of factors, major to minor.
/// Invariant: the sizes of a dimension's factors multiply to its extent; a dimension that a reshape adds or drops (of
/// size 1) has none.
struct ShardingRule {
  using DimFactors = llvm::SmallVector<int64_t, 2>;    ///< indices into `factors`
  using TensorFactors = llvm::SmallVector<DimFactors>; ///< one entry per dimension
  llvm::SmallVector<Factor> factors;
  llvm::SmallVector<TensorFactors> operands;
  llvm::SmallVector<TensorFactors> results;
  /// Per result, PassThrough factors over which that result is a partial sum although other results carry them: the
  /// queries of attention's gradient are rows of the queries' gradient, and keys' and values' gradients sum over them.
  /// Empty: no result has any.
  llvm::SmallVector<DimFactors> summed;
  /// Sets of operands in which the operation is jointly linear: when exactly the operands of one set are partial sums
  /// over the same axes, so is every result. In any other case an operand has to be reduced first.
  llvm::SmallVector<llvm::SmallVector<unsigned, 2>> linear;
  /// Operands that are added to the result, in no set of `linear`: they have to be partial exactly where the result is,
  /// or every rank would add them.
  llvm::SmallVector<unsigned, 1> addends;

  /// Whether the result is a partial value when the factor is sharded.
  bool isPartialOver(unsigned result, int64_t factor) const;

  /// `([i0, i1], [i1]) -> ([i0]) {i0=8, i1=4} reduction={i1:sum}`, for tests and messages.
  std::string str() const;
};

} // namespace nd

#endif // ND_DIALECT_ND_IR_SHARDINGRULE_H
