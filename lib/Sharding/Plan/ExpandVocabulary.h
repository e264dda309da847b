//===- ExpandVocabulary.h - Cross-entropy over a sharded vocabulary -*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_LIB_SHARDING_PLAN_EXPANDVOCABULARY_H
#define ND_LIB_SHARDING_PLAN_EXPANDVOCABULARY_H

#include "Program.h"

namespace nd {

/// Replaces cross-entropies and their gradients by their definitions, in which the maximum, the sum of exponentials and
/// the label's logit are reductions over the vocabulary: tensor axes may shard that, and no rank needs all logits.
/// Returns the logits. Where `ranks` do not divide the vocabulary, logits behind it are minus infinity: none is, until
/// the vocabulary is padded.
mlir::FailureOr<llvm::SmallVector<mlir::Value>> expandVocabulary(Program &program, int64_t ranks);

} // namespace nd

#endif // ND_LIB_SHARDING_PLAN_EXPANDVOCABULARY_H
