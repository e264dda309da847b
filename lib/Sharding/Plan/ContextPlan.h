//===- ContextPlan.h - How ranks share a sequence ---------------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Chooses how every attention reaches keys of other ranks, and the order in which the sequence is stored.
//
//   ring     keys and values go around; the sequence is stored in zig-zag: rank r of c has the chunks r and 2c-1-r of
//            2c, so that all ranks have the same work
//   gather   every rank gathers all keys and values; stored as for the ring
//   ulysses  heads are exchanged for the sequence, before and after; the sequence keeps its order when all attentions
//            do so
//
// `auto` takes ulysses where heads divide and it sends fewer bytes (ring and gather send 3 (c-1) K in a step, K = 2 T
// hk elements; ulysses 2 (c-1)/c T (2 hq + 2 hk)), else the ring.
//
// Positions, documents, key paddings and masks that inputs [batch, sequence] give are stored like these. Where
// something depends on places otherwise (an iota, a mask that is an input of its own), the sequence keeps its order in
// all modes. Attention whose queries or keys are no places of the sequence takes "gather" and no order.
//
//===----------------------------------------------------------------------===//

#ifndef ND_LIB_SHARDING_PLAN_CONTEXTPLAN_H
#define ND_LIB_SHARDING_PLAN_CONTEXTPLAN_H

#include "Analysis.h"
#include "Padding/PadDimensions.h"
#include "nd/Sharding/Options.h"

namespace nd {

/// Marks every attention and gradient of one with `cp_mode` and the order of the sequence, and the inputs that have a
/// sequence with the order in which they are stored (`nd.chunks`). Fails where a mode that was asked for does not fit.
llvm::LogicalResult planContext(Program &program, const ShardingOptions &options);

/// The order in which the sequence is stored, or null where it is its own.
mlir::DenseI64ArrayAttr storedOrder(Program &program);

/// The dimension of an input that is its batch: behind the one of microbatches, if it has that.
int64_t getBatchDim(mlir::BlockArgument input);
/// Whether an input holds integers [batch, sequence, ...], by the sizes that `nd.model` names.
bool hasSequence(mlir::func::FuncOp function, unsigned argument);
/// The classes of the sequence of these inputs.
llvm::DenseSet<DimensionClasses::Id> findSequence(Program &program, const Analysis &analysis);
/// The dimensions of a value that are of the sequence.
llvm::SmallVector<int64_t> sequenceDimsOf(mlir::Value value, const Analysis &analysis,
                                          const llvm::DenseSet<DimensionClasses::Id> &sequence);
/// The dimension of an input that is stored and sharded as the sequence, if it has one.
std::optional<int64_t> storedSequenceDim(mlir::func::FuncOp function, mlir::BlockArgument input,
                                         const Analysis &analysis,
                                         const llvm::DenseSet<DimensionClasses::Id> &sequence);

/// Something that is right only for a sequence in its own order.
struct PlaceDependence {
  mlir::Operation *op;
  std::string what; ///< "'nd.iota' depends on ..."
};
std::optional<PlaceDependence> findPlaceDependence(Program &program, const Analysis &analysis);

/// What an attention has along the sequence that the inputs' sequence does not give, by name; empty: nothing.
std::string findOwnPlaces(AttentionOp attention, const Analysis &analysis,
                          const llvm::DenseSet<DimensionClasses::Id> &sequence);

/// Fails for what depends on places along a sequence that is not stored in its order.
llvm::LogicalResult checkStoredOrder(Program &program, const Analysis &analysis);

} // namespace nd

#endif // ND_LIB_SHARDING_PLAN_CONTEXTPLAN_H
