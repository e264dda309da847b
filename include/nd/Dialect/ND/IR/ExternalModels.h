//===- ExternalModels.h - Rules of upstream operations ----------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_DIALECT_ND_IR_EXTERNALMODELS_H
#define ND_DIALECT_ND_IR_EXTERNALMODELS_H

namespace mlir {
class DialectRegistry;
} // namespace mlir

namespace nd {

/// Gives the elementwise operations of `arith` and `math` their gradient rules (`DifferentiableOpInterface`).
void registerDifferentiableModels(mlir::DialectRegistry &registry);

/// Gives them, and `arith.constant`, their sharding rules (`ShardingRuleOpInterface`).
void registerShardingModels(mlir::DialectRegistry &registry);

} // namespace nd

#endif // ND_DIALECT_ND_IR_EXTERNALMODELS_H
