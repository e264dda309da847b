//===- RuleCache.h - One rule for equal operations --------------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// A rule follows from an operation's name, attributes and types (and of a padding, from whether it is zero), so that
// the operations of equal blocks of a model share it. Lives no longer than the operations that it has seen.
//
//===----------------------------------------------------------------------===//

#ifndef ND_LIB_SHARDING_VERIFY_RULECACHE_H
#define ND_LIB_SHARDING_VERIFY_RULECACHE_H

#include "Program.h"
#include "mlir/IR/OperationSupport.h"
#include "nd/Dialect/ND/IR/Builders.h"
#include "llvm/ADT/DenseMap.h"

namespace nd {

class RuleCache {
public:
  /// Null, after an error that names the operation, where there is none.
  const ShardingRule *get(mlir::Operation *op) {
    const ShardingRule *&known = byOperation[op];
    if (known)
      return known;
    std::unique_ptr<ShardingRule> &rule = byStructure[op];
    if (!rule) {
      mlir::FailureOr<ShardingRule> computed = getShardingRule(op);
      if (failed(computed))
        return nullptr;
      rule = std::make_unique<ShardingRule>(std::move(*computed));
    }
    return known = rule.get();
  }

private:
  /// Which values an operation reads, and where it stands, do not matter.
  struct Structure : llvm::DenseMapInfo<mlir::Operation *> {
    static unsigned getHashValue(const mlir::Operation *op) {
      llvm::hash_code hash = mlir::OperationEquivalence::computeHash(
          const_cast<mlir::Operation *>(op), mlir::OperationEquivalence::ignoreHashValue,
          mlir::OperationEquivalence::ignoreHashValue, mlir::OperationEquivalence::IgnoreLocations);
      for (mlir::Type type : const_cast<mlir::Operation *>(op)->getOperandTypes())
        hash = llvm::hash_combine(hash, type.getAsOpaquePointer());
      return static_cast<unsigned>(hash);
    }
    static bool isEqual(const mlir::Operation *a, const mlir::Operation *b) {
      if (a == b || a == getEmptyKey() || a == getTombstoneKey() || b == getEmptyKey() || b == getTombstoneKey())
        return a == b;
      auto *left = const_cast<mlir::Operation *>(a), *right = const_cast<mlir::Operation *>(b);
      auto leftPad = mlir::dyn_cast<PadOp>(left), rightPad = mlir::dyn_cast<PadOp>(right);
      if (leftPad && rightPad && isZeroSplat(leftPad.getValue()) != isZeroSplat(rightPad.getValue()))
        return false;
      return llvm::equal(left->getOperandTypes(), right->getOperandTypes()) &&
             mlir::OperationEquivalence::isEquivalentTo(left, right, mlir::OperationEquivalence::ignoreValueEquivalence,
                                                        nullptr, mlir::OperationEquivalence::IgnoreLocations);
    }
  };

  llvm::DenseMap<mlir::Operation *, const ShardingRule *> byOperation;
  llvm::DenseMap<mlir::Operation *, std::unique_ptr<ShardingRule>, Structure> byStructure;
};

} // namespace nd

#endif // ND_LIB_SHARDING_VERIFY_RULECACHE_H
