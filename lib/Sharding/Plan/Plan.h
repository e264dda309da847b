//===- Plan.h - The default plan of a step ----------------------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_LIB_SHARDING_PLAN_PLAN_H
#define ND_LIB_SHARDING_PLAN_PLAN_H

#include "Analysis.h"
#include "MeshView.h"
#include "Plan/SettledClasses.h"
#include "Plan/TensorPlan.h"
#include "nd/Dialect/ND/IR/Signature.h"
#include "nd/Sharding/Options.h"
#include <map>

namespace nd {

/// Gives arguments and results their shardings, as attributes: inputs their batch and sequence, parameters and
/// optimizer state how they are stored, and how the computation uses them (`nd.use_sharding`). What is annotated
/// already is kept, and checked.
class Plan {
public:
  Plan(Program &program, const Analysis &analysis, const TensorPlan *tensorPlan, const ShardingOptions &options);

  llvm::LogicalResult annotate();

private:
  llvm::LogicalResult annotateInput(unsigned index);
  llvm::LogicalResult annotateWeight(unsigned index);
  llvm::LogicalResult annotateState(unsigned index);
  llvm::LogicalResult annotateResult(unsigned index);
  /// An output is left to propagation, unless how it is stored has to be said: padded, or in the sequence's order.
  void annotateOutput(unsigned index);
  /// `nd.chunks` of a dimension of the sequence; null where it is stored in its own order.
  mlir::DictionaryAttr chunksOf(mlir::RankedTensorType type, int64_t dim);
  llvm::LogicalResult checkGiven(mlir::Attribute given, mlir::RankedTensorType type, const std::string &tensor);
  /// Where the logical shape is not the padded one: what each shard holds.
  void setBlocks();
  /// What the annotations of weights say of the classes of their dimensions.
  llvm::LogicalResult settleClasses();
  /// How the tensor axes shard a weight, by the classes of its dimensions; as the user has settled them, or by the
  /// plan.
  TensorSharding useOf(mlir::BlockArgument weight);
  TensorSharding plannedUse(mlir::BlockArgument weight, const SettledClasses *settled);
  /// The tensor axes of an annotation: what is left of it where the computation uses the weight.
  TensorSharding tensorPart(TensorSharding sharding);
  /// A warning, here and in the report (`notes` of `nd.plan`), of weights that the user has placed and that are not
  /// used as they are stored.
  void noteExchanges();
  /// The same, stored in shards over the axes of FSDP too (formulas: dimension 0 when they divide it, else the largest
  /// that they divide).
  TensorSharding storedOver(const AxisList &axes, llvm::ArrayRef<int64_t> shape, TensorSharding used);
  llvm::LogicalResult checkDivides(const AxisList &axes, int64_t size, int64_t dim, const std::string &tensor,
                                   llvm::StringRef remedy);

  Program &program;
  mlir::func::FuncOp function;
  const Analysis &analysis;
  const TensorPlan *tensorPlan;
  const ShardingOptions &options;
  MeshView mesh;
  SignatureAttrs attributes;
  SignatureIndex signature;
  SettledClasses settled;
  std::map<std::string, llvm::SmallVector<unsigned>> exchanged; ///< weights by how they are used
  AxisList dataAxes, contextAxes, tensorAxes, storageAxes;
  std::optional<int64_t> batch;
  llvm::DenseSet<DimensionClasses::Id> sequence;
};

} // namespace nd

#endif // ND_LIB_SHARDING_PLAN_PLAN_H
