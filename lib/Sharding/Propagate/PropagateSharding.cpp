//===- PropagateSharding.cpp - Shardings for every value ------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Propagate/ReplicatedWork.h"
#include "nd/Dialect/ND/IR/Names.h"
#include "nd/Sharding/Passes.h"

namespace nd {
#define GEN_PASS_DEF_PROPAGATESHARDING
#include "nd/Sharding/Passes.h.inc"
} // namespace nd

using namespace mlir;
using namespace nd;

namespace {

/// Words of the vocabulary that every rank has at most, where all that is computed on words is sharded over the tensor
/// axes, in equal shards. Nothing where it is not: an operation needs all words, an annotation keeps them together.
std::optional<int64_t> vocabularyWidth(Program &program, const Analysis &analysis, const Propagation &propagation) {
  const DimensionClasses &classes = analysis.getClasses();
  const MeshView &mesh = propagation.getMesh();
  AxisList tensorAxes;
  for (unsigned axis : llvm::seq<unsigned>(mesh.getSizes().size()))
    if (mesh.getRole(axis) == AxisRole::tensor && mesh.getSizes()[axis] > 1)
      tensorAxes.push_back(axis);
  func::FuncOp function = program.function;
  llvm::DenseSet<DimensionClasses::Id> words;
  int64_t largest = 0;
  for (BlockArgument argument : function.getArguments())
    if (std::optional<int64_t> dim = names::argInt(function, argument.getArgNumber(), names::kVocabulary);
        dim && *dim >= 0 && *dim < cast<RankedTensorType>(argument.getType()).getRank())
      for (DimensionClasses::Id id : classes.getDim(argument, *dim)) {
        words.insert(id);
        largest = std::max(largest, classes.getSize(id));
      }
  if (tensorAxes.empty() || words.empty())
    return std::nullopt;

  auto isSharded = [&](const DimensionClasses::Ids &ids, ArrayRef<unsigned> axes) {
    if (llvm::none_of(ids, [&](DimensionClasses::Id id) { return words.contains(id); }))
      return true;
    // Others that shard the dimension cut the tensor axes' parts again.
    return ids.size() == 1 && axes.take_front(tensorAxes.size()) == ArrayRef(tensorAxes);
  };
  auto isStoredSharded = [&](Value value, ShardingAttr attr) {
    auto type = cast<RankedTensorType>(value.getType());
    for (int64_t dim : llvm::seq(type.getRank())) {
      AxisList axes;
      for (StringAttr name : attr ? attr.getDimAxes(dim) : SmallVector<StringAttr>())
        for (unsigned axis : llvm::seq<unsigned>(mesh.getSizes().size()))
          if (mesh.getName(axis) == name && mesh.getSizes()[axis] > 1)
            axes.push_back(axis);
      if (!isSharded(classes.getDim(value, dim), axes))
        return false;
    }
    return true;
  };
  for (BlockArgument argument : function.getArguments())
    for (StringRef key : {names::kSharding, names::kUseSharding, names::kUpdateSharding}) {
      auto attr = function.getArgAttrOfType<ShardingAttr>(argument.getArgNumber(), key);
      if ((attr || key == names::kSharding) && !isStoredSharded(argument, attr))
        return std::nullopt;
    }
  for (auto [index, value] : llvm::enumerate(program.getReturn()->getOperands()))
    if (auto attr = function.getResultAttrOfType<ShardingAttr>(index, names::kSharding);
        attr && !isStoredSharded(value, attr))
      return std::nullopt;
  for (const Analysis::Step &step : analysis.getSteps())
    for (auto [factor, axes] : llvm::enumerate(propagation.get(step.op)))
      if (!isSharded(classes.getFactor(step.op, factor), axes))
        return std::nullopt;
  return largest / numShards(mesh.getSizes(), tensorAxes);
}

struct PropagateSharding : nd::impl::PropagateShardingBase<PropagateSharding> {
  void runOnOperation() override {
    FailureOr<Program> program = Program::getWithMesh(getOperation());
    if (failed(program))
      return signalPassFailure();
    FailureOr<Analysis> analysis = Analysis::get(*program);
    if (failed(analysis))
      return signalPassFailure();
    Propagation propagation(*program, *analysis);
    if (failed(propagation.run()))
      return signalPassFailure();
    noteReplicatedWork(*program, *analysis, propagation);
    for (const Analysis::Step &step : analysis->getSteps())
      step.op->setAttr(names::kFactorAxes, propagation.getMesh().toLists(propagation.get(step.op)));
    if (std::optional<int64_t> width = vocabularyWidth(*program, *analysis, propagation))
      names::setModuleEntry(getOperation(), names::kPromises, names::promise::kVocabularyWidth,
                            IntegerAttr::get(IntegerType::get(&getContext(), 64), *width));
  }
};

} // namespace
