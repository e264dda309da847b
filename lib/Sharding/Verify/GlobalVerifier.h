//===- GlobalVerifier.h - States of the global view, recomputed -*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_LIB_SHARDING_VERIFY_GLOBALVERIFIER_H
#define ND_LIB_SHARDING_VERIFY_GLOBALVERIFIER_H

#include "MeshView.h"
#include "Verify/RuleCache.h"

namespace nd {

/// Compares the encoding of every type with what the rules say. It chooses nothing: the axes of a factor are read off
/// the operation's tensors, which must all agree on them.
class GlobalVerifier {
public:
  GlobalVerifier(Program &program) : program(program), mesh(program.mesh) {}
  llvm::LogicalResult run();

private:
  /// Axes of one factor, and the dimension that said so.
  struct Witness {
    AxisList axes;
    std::string dim;
  };

  llvm::LogicalResult verifyBoundary();
  llvm::LogicalResult verifyAsPartial(AsPartialOp op, const TensorSharding &from, const TensorSharding &to);
  llvm::LogicalResult verifyOperation(mlir::Operation *op);
  llvm::LogicalResult readFactors(mlir::Operation *op, const ShardingRule &rule, mlir::Value value,
                                  const TensorSharding &sharding, const ShardingRule::TensorFactors &factors,
                                  llvm::SmallVectorImpl<std::optional<Witness>> &witnesses);

  Program &program;
  RuleCache rules;
  MeshView mesh;
};

} // namespace nd

#endif // ND_LIB_SHARDING_VERIFY_GLOBALVERIFIER_H
