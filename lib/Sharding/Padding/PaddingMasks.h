//===- PaddingMasks.h - What padding holds, and where it must not count -*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// By what padding holds (PaddingStates): where it would count - a product, a sum or a maximum runs over it, a parameter
// is updated with it - and does not hold what leaves the result alone, it is set to that. An operation that needs the
// whole of a dimension gets it without padding, and what it makes is padded with zeros.
//
// For a transformer nothing has to be set: heads and widths are padded with zeros from the parameters on, labels of
// padded positions are ignored, so that every gradient of them is zero, and their keys are invisible.
//
//===----------------------------------------------------------------------===//

#ifndef ND_LIB_SHARDING_PADDING_PADDINGMASKS_H
#define ND_LIB_SHARDING_PADDING_PADDINGMASKS_H

#include "Padding/PadDimensions.h"

namespace nd {

/// Call it behind padDimensions, with the analysis from before. `order`: that in which chunks of the sequence are
/// stored, null where it is its own, so that padding is at the end.
llvm::LogicalResult maskPadding(Program &program, const Analysis &analysis, const PaddedSizes &sizes,
                                const llvm::DenseSet<DimensionClasses::Id> &sequence, mlir::DenseI64ArrayAttr order);

} // namespace nd

#endif // ND_LIB_SHARDING_PADDING_PADDINGMASKS_H
