//===- TokenTiles.h - A region in chunks of tokens --------------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The logits of a rank have its tokens as leading dimensions and a vocabulary as their last. Every value that has both
// is wide. The region consists of the operations that read or write a wide value, and of all that lies on a way from
// one of them to another (the collectives of a vocabulary-parallel cross-entropy, the normalizer of each token).
//
// Invariants of a region that has been found:
//  - its operations treat tokens independently, or sum over all of them; nothing in it reads such a sum
//  - what stands between its operations and depends on one of them feeds none of them
//
// So it can run for one chunk of tokens after the other: operands are cut, results are joined along tokens or summed,
// and no wide value is larger than a chunk's. Collectives run per chunk; together they move the same bytes.
//
//===----------------------------------------------------------------------===//

#ifndef ND_LIB_MEMORY_TOKENTILES_H
#define ND_LIB_MEMORY_TOKENTILES_H

#include "mlir/IR/Builders.h"
#include "nd/Dialect/ND/IR/ND.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

namespace nd {

class TokenTiles {
public:
  /// What stands against tiling: an operation, and what it does.
  struct Obstacle {
    mlir::Operation *op = nullptr;
    std::string reason;
  };

  /// The region around these logits, which have at least two dimensions; nothing, and `obstacle`, where there is none.
  static std::optional<TokenTiles> find(mlir::Value logits, Obstacle &obstacle);

  llvm::ArrayRef<mlir::Operation *> getRegion() const { return region; }

  /// Replaces the region by one in chunks of at most `tokens` tokens (at least 1). Collectives get instances from
  /// `instance` on, which is raised.
  void tile(int64_t tokens, int64_t &instance);

private:
  /// For each dimension of a tensor the dimension of the logits that it is, or -1.
  using Roles = llvm::SmallVector<int64_t>;
  struct OpRoles {
    llvm::SmallVector<Roles> operands, results;
    llvm::SmallVector<bool> sums; ///< per result: it is a sum over all tokens
  };
  /// A chunk is a box of tokens, one of a grid.
  struct Box {
    llvm::SmallVector<int64_t> starts, sizes; ///< per token dimension
  };
  struct Grid {
    llvm::SmallVector<int64_t> counts; ///< boxes per token dimension
    llvm::SmallVector<Box> boxes;      ///< the last dimension's vary fastest
  };

  explicit TokenTiles(mlir::Value logits);
  mlir::LogicalResult findWide(mlir::Value logits, Obstacle &obstacle);
  mlir::LogicalResult findBetween(Obstacle &obstacle);
  mlir::FailureOr<OpRoles> rolesOf(mlir::Operation *op, const llvm::DenseMap<mlir::Value, Roles> &known,
                                   Obstacle &obstacle) const;
  mlir::FailureOr<OpRoles> rolesByRule(mlir::Operation *op, const llvm::DenseMap<mlir::Value, Roles> &known,
                                       Obstacle &obstacle) const;
  bool isToken(int64_t role) const { return role >= 0 && role < static_cast<int64_t>(tokenSizes.size()); }
  bool isWide(const Roles &roles) const;
  bool hasTokens(const Roles &roles) const {
    return llvm::any_of(roles, [&](int64_t role) { return isToken(role); });
  }

  Grid gridOf(int64_t tokens) const;
  /// The part of an operation for a box; a collective takes the next `instance`.
  void tileOp(mlir::OpBuilder &builder, mlir::Operation *op, const Box &box,
              llvm::DenseMap<mlir::Value, mlir::Value> &parts, int64_t &instance) const;
  mlir::Value tileIota(mlir::OpBuilder &builder, IotaOp iota, const Roles &roles, const Box &box) const;
  llvm::SmallVector<int64_t> partOf(llvm::ArrayRef<int64_t> shape, const Roles &roles, const Box &box) const;
  mlir::Value cut(mlir::OpBuilder &builder, mlir::Value value, const Roles &roles, const Box &box) const;
  mlir::Value join(mlir::OpBuilder &builder, llvm::SmallVector<mlir::Value> parts, const Roles &roles,
                   llvm::ArrayRef<int64_t> counts) const;

  llvm::SmallVector<int64_t> tokenSizes;       ///< of the logits' leading dimensions
  llvm::SmallVector<mlir::Operation *> region; ///< in program order
  llvm::DenseMap<mlir::Operation *, OpRoles> roles;
};

} // namespace nd

#endif // ND_LIB_MEMORY_TOKENTILES_H
