//===- PadDimensions.h - Sizes that axes divide -----------------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_LIB_SHARDING_PADDING_PADDIMENSIONS_H
#define ND_LIB_SHARDING_PADDING_PADDIMENSIONS_H

#include "Analysis.h"

namespace nd {

/// New sizes of classes of dimensions, larger than their own: the elements behind are padding.
using PaddedSizes = llvm::DenseMap<DimensionClasses::Id, int64_t>;

/// Whether an operation takes or makes the whole of a class in a dimension of one of its tensors, `dims` in its rule.
bool needsWhole(const Analysis &analysis, const Analysis::Step &step, const ShardingRule::DimFactors &dim,
                DimensionClasses::Id id);

/// Gives every value the shape that its classes have when padded, and every argument and result that grows its logical
/// shape as `nd.global_shape`. Attentions learn how many keys are real. Fails for a constant that
/// cannot grow. What needs the whole of a dimension is left to maskPadding. `sequence` are the classes of the sequence.
llvm::LogicalResult padDimensions(Program &program, const Analysis &analysis, const PaddedSizes &sizes,
                                  const llvm::DenseSet<DimensionClasses::Id> &sequence);

} // namespace nd

#endif // ND_LIB_SHARDING_PADDING_PADDIMENSIONS_H
