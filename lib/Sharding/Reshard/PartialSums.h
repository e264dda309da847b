//===- PartialSums.h - What carries a partial sum on ------------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Questions about single operations that propagation and the plan of states answer alike: whether a partial sum passes
// through an operation, and whether it should.
//
//===----------------------------------------------------------------------===//

#ifndef ND_LIB_SHARDING_RESHARD_PARTIALSUMS_H
#define ND_LIB_SHARDING_RESHARD_PARTIALSUMS_H

#include "Program.h"
#include "nd/Sharding/FactorSharding.h"
#include "llvm/ADT/DenseMap.h"

namespace nd {

/// Operations whose result is only a term of a sum, beside the result of one that sums over shards; and the axes over
/// which that is a partial sum. Partial results over the same axes are reduced together with it: they cost nothing.
llvm::DenseMap<mlir::Operation *, AxisList>
findTermsOfSums(mlir::Block &body, llvm::function_ref<AxisList(mlir::Operation *)> getSummedAxes);

/// Whether carrying these partial operands on means to reduce more bytes in the end than reducing them here.
/// `isReducedAnyway`: what an operation yields is reduced, whatever its operands are.
bool growsWhenCarriedOn(mlir::Operation *op, llvm::ArrayRef<unsigned> partial,
                        llvm::function_ref<bool(mlir::Operation *)> isReducedAnyway);

/// Whether results of an operation are partial sums when exactly these operands are, and should be.
bool carriesPartial(mlir::Operation *op, const ShardingRule &rule, llvm::ArrayRef<unsigned> partial,
                    llvm::function_ref<bool(mlir::Operation *)> isReducedAnyway);

/// Whether the gradient of attention is all that an operation reads: in another form, rounded or summed over heads.
bool comesFromAttentionGradient(mlir::Operation *op);

/// The 0-d factor of a product of a tensor by a number everywhere, at the builder's insertion point; null where operand
/// 1 - `tensor` is no such number.
mlir::Value buildScaleFactor(mlir::OpBuilder &builder, mlir::Operation *product, unsigned tensor);
/// Whether there is one.
bool hasScaleFactor(mlir::Operation *product, unsigned tensor);

} // namespace nd

#endif // ND_LIB_SHARDING_RESHARD_PARTIALSUMS_H
