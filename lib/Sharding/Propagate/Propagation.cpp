//===- Propagation.cpp - The axes on which each operation runs ------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Propagate/Propagation.h"
#include "Reshard/StatePlan.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "nd/Dialect/ND/IR/Names.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace nd;

namespace {

RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

} // namespace

void Propagation::claim(Value value, const TensorSharding &sharding) {
  int64_t elements = typeOf(value).getNumElements();
  for (auto [dim, axes] : llvm::enumerate(sharding.dims)) {
    size_t next = 0;
    for (Id id : classes.getDim(value, dim)) {
      AxisList own;
      int64_t rest = classes.getSize(id);
      for (; next < axes.size() && rest % mesh.getSizes()[axes[next]] == 0; ++next) {
        rest /= mesh.getSizes()[axes[next]];
        own.push_back(axes[next]);
      }
      if (!own.empty() && !classes.isTangled(id)) {
        auto [it, inserted] = claims.try_emplace(id, Claim{own, elements});
        if (!inserted && it->second.axes != own && it->second.elements < elements)
          it->second = {own, elements};
      }
      if (rest != 1)
        break;
    }
  }
}

LogicalResult Propagation::readAnnotations() {
  func::FuncOp function = program.function;
  for (unsigned axis : llvm::seq<unsigned>(mesh.getSizes().size()))
    if (mesh.getRole(axis) == AxisRole::tensor && mesh.getSizes()[axis] > 1)
      tensorAxes.push_back(axis);
  for (BlockArgument argument : program.getBody().getArguments()) {
    unsigned index = argument.getArgNumber();
    FailureOr<TensorSharding> sharding = mesh.fromArgument(function, argument);
    if (failed(sharding))
      return failure();
    stored[argument] = *sharding;
    if (auto used = function.getArgAttrOfType<ShardingAttr>(index, names::kUseSharding)) {
      sharding =
          mesh.fromAttr(used, typeOf(argument).getShape(), describe(argument), [&] { return function.emitError(); });
      if (failed(sharding))
        return failure();
    }
    bool isOptimizerState =
        llvm::any_of(argument.getUsers(), [](Operation *user) { return isa<AdamWOp, SgdOp>(user); }) &&
        names::argKind(function, index) != names::kind::kWeight;
    if (!isOptimizerState)
      claim(argument, *sharding);
    if (std::optional<int64_t> dim = names::argInt(function, index, names::kSequence))
      for (Id id : classes.getDim(argument, *dim))
        sequence.insert(id);
  }
  for (auto [index, value] : llvm::enumerate(program.getReturn()->getOperands())) {
    auto attr = function.getResultAttrOfType<ShardingAttr>(index, names::kSharding);
    StringRef kind = names::resultKind(function, index);
    // How state and gradients leave the step is how they are stored.
    if (!attr || (!kind.empty() && kind != names::kind::kOutput && kind != names::kind::kLogits))
      continue;
    FailureOr<TensorSharding> sharding = mesh.fromAttr(attr, typeOf(value).getShape(), describeResult(function, index),
                                                       [&] { return function.emitError(); });
    if (failed(sharding))
      return failure();
    claim(value, *sharding);
  }
  return success();
}

bool Propagation::isSequence(Operation *op, unsigned factor) const {
  return llvm::any_of(classes.getFactor(op, factor), [&](Id id) { return sequence.contains(id); });
}

AxisList Propagation::axesOf(Operation *op, unsigned factor, bool withTensorAxes) const {
  AxisList axes;
  for (Id id : classes.getFactor(op, factor)) {
    AxisList own;
    if (auto it = claims.find(id); it != claims.end())
      own = it->second.axes;
    if (withTensorAxes && sequence.contains(id))
      own.append(tensorAxes);
    axes.append(own);
    if (numShards(mesh.getSizes(), own) != classes.getSize(id))
      break;
  }
  return axes;
}

FactorAxes Propagation::decideByClasses(const Analysis::Step &step, bool withTensorAxes) const {
  FactorAxes result(step.rule.factors.size());
  llvm::SmallBitVector used(mesh.getSizes().size());
  SmallVector<unsigned> order = llvm::to_vector(llvm::seq<unsigned>(step.rule.factors.size()));
  // Dimensions of parameters come before the sequence, and among equals those of the rule's order.
  llvm::stable_sort(order, [&](unsigned a, unsigned b) { return isSequence(step.op, a) < isSequence(step.op, b); });
  for (unsigned factor : order) {
    if (step.rule.factors[factor].kind == FactorKind::NeedReplication)
      continue;
    for (unsigned axis : axesOf(step.op, factor, withTensorAxes)) {
      if (used.test(axis))
        break;
      used.set(axis);
      result[factor].push_back(axis);
    }
  }
  if (step.op->getAttr("cp_mode") == StringAttr::get(step.op->getContext(), "ulysses"))
    exchangeHeads(step, result);
  SmallVector<const ShardingRule::TensorFactors *> tensors;
  for (const ShardingRule::TensorFactors &tensor :
       llvm::concat<const ShardingRule::TensorFactors>(step.rule.operands, step.rule.results))
    tensors.push_back(&tensor);
  dropInexpressible(mesh.getSizes(), step.rule, tensors, result);
  return result;
}

void Propagation::exchangeHeads(const Analysis::Step &step, FactorAxes &axes) const {
  const ShardingRule::DimFactors &keyHeads = step.rule.operands[1][1];
  if (keyHeads.empty())
    return;
  for (unsigned factor : llvm::seq<unsigned>(axes.size()))
    if (isSequence(step.op, factor))
      axes[keyHeads.front()].append(std::exchange(axes[factor], {}));
}

FactorAxes Propagation::decideByOperands(const Analysis::Step &step) const {
  SmallVector<ShardedTensor> tensors;
  for (auto [value, factors] : llvm::zip_equal(step.op->getOperands(), step.rule.operands))
    if (auto it = stored.find(value); it != stored.end())
      tensors.push_back({&factors, &it->second, typeOf(value).getNumElements()});
  // The state, and where there is none the gradient, says where the update runs: a whole parameter is cut.
  return chooseFactorAxes(mesh.getSizes(), step.rule, tensors);
}

bool Propagation::usesTensorAxes(const FactorAxes &axes) const {
  return llvm::any_of(axes, [&](const AxisList &list) {
    return llvm::any_of(list, [&](unsigned axis) { return llvm::is_contained(tensorAxes, axis); });
  });
}

void Propagation::findTensorParallel() {
  for (const Analysis::Step &step : analysis.getSteps())
    if (!analysis.isUpdate(step.op))
      if (FactorAxes axes = decideByClasses(step, false); usesTensorAxes(axes))
        tensorParallel[step.op] = partialResultsOf(step, axes);
}

void Propagation::findWholeKeys() {
  auto isWeight = [&](Value value) { return getWeightBehind(value, program.function) != nullptr; };
  auto isShared = [&](Value value) {
    return isWeight(value) ||
           llvm::any_of(value.getUsers(), [&](Operation *user) { return tensorParallel.contains(user); });
  };
  for (const Analysis::Step &step : analysis.getSteps()) {
    auto attention = dyn_cast<AttentionOp>(step.op);
    if (!attention || !tensorParallel.contains(attention))
      continue;
    for (Value keys : {attention.getKey(), attention.getValue()}) {
      // They may be repeated for the query heads, which the tensor axes shard then.
      while (Operation *op = keys.getDefiningOp()) {
        if (!isa<BroadcastOp, ReshapeOp, TransposeOp>(op) || !tensorParallel.contains(op))
          break;
        keys = op->getOperand(0);
      }
      // Through operations on so many elements, back to the product with a weight.
      llvm::SetVector<Operation *> found;
      SmallVector<Value> open = {keys};
      bool isProduced = false;
      while (!open.empty()) {
        Value value = open.pop_back_val();
        Operation *op = value.getDefiningOp();
        if (!op || tensorParallel.contains(op) || typeOf(value).getNumElements() != typeOf(keys).getNumElements() ||
            !found.insert(op))
          continue;
        if (!isa<DotGeneralOp>(op))
          open.append(op->operand_begin(), op->operand_end());
        else
          isProduced |= llvm::any_of(op->getOperands(), isWeight) && llvm::all_of(op->getOperands(), isShared);
      }
      if (isProduced)
        wholeKeys.insert_range(found);
    }
  }
}

SmallVector<Value> Propagation::partialResultsOf(const Analysis::Step &step, const FactorAxes &axes) const {
  SmallVector<Value> results;
  bool sums = llvm::any_of(llvm::zip_equal(step.rule.factors, axes), [&](const auto &pair) {
    return std::get<0>(pair).kind == FactorKind::Reduction && usesTensorAxes({std::get<1>(pair)});
  });
  if (sums && (isa<DotGeneralOp, TakeOp>(step.op) || (isa<ReduceOp>(step.op) && comesFromAttentionGradient(step.op))))
    results.push_back(step.op->getResult(0));
  for (auto [result, factors] : llvm::zip(step.op->getResults(), step.rule.summed))
    if (llvm::any_of(factors, [&](int64_t factor) { return usesTensorAxes({axes[factor]}); }))
      results.push_back(result);
  return results;
}

void Propagation::findSequenceParallelRegion() {
  auto module = program.function->getParentOfType<ModuleOp>();
  auto enabled = dyn_cast_or_null<BoolAttr>(names::moduleEntry(module, names::kPlan, "sequence_parallel"));
  if (tensorAxes.empty() || sequence.empty() || !enabled || !enabled.getValue())
    return;
  llvm::DenseSet<Operation *> eligible;
  llvm::DenseSet<Value> partial, inside;
  auto sums = [&](Operation *op) {
    auto it = tensorParallel.find(op);
    return it != tensorParallel.end() && !it->second.empty();
  };
  // A result that is added to a partial sum is reduced with it.
  auto terms = findTermsOfSums(program.getBody(), [&](Operation *op) { return sums(op) ? tensorAxes : AxisList(); });
  auto isReducedAnyway = [&](Operation *op) { return sums(op) || terms.contains(op); };
  for (const Analysis::Step &step : analysis.getSteps()) {
    if (analysis.isUpdate(step.op) || wholeKeys.contains(step.op))
      continue;
    bool hasSequence = llvm::any_of(llvm::seq<unsigned>(step.rule.factors.size()), [&](unsigned factor) {
      return isSequence(step.op, factor) && step.rule.factors[factor].kind != FactorKind::NeedReplication;
    });
    if (!hasSequence)
      continue;
    if (auto it = tensorParallel.find(step.op); it != tensorParallel.end()) {
      partial.insert_range(it->second);
      continue;
    }
    eligible.insert(step.op);
    SmallVector<unsigned> carried;
    bool follows = false;
    for (auto [index, operand] : llvm::enumerate(step.op->getOperands())) {
      if (partial.contains(operand))
        carried.push_back(index);
      follows |= partial.contains(operand) || inside.contains(operand);
    }
    if (!carried.empty() && carriesPartial(step.op, step.rule, carried, isReducedAnyway)) {
      eligible.erase(step.op);
      partial.insert_range(step.op->getResults());
    } else if (follows) {
      region.insert(step.op);
      inside.insert_range(step.op->getResults());
    }
  }
  // What only such operations read is computed on their shards.
  for (const Analysis::Step &step : llvm::reverse(analysis.getSteps()))
    if (eligible.contains(step.op) && !step.op->use_empty() &&
        llvm::all_of(step.op->getUsers(), [&](Operation *user) { return region.contains(user); }))
      region.insert(step.op);
}

bool Propagation::isStorageOperation(const Analysis::Step &step) const {
  if (analysis.isUpdate(step.op))
    return true;
  auto parameter = isa<arith::TruncFOp>(step.op) ? dyn_cast<BlockArgument>(step.op->getOperand(0)) : BlockArgument();
  return parameter && getWeightBehind(parameter, program.function);
}

LogicalResult Propagation::run() {
  if (failed(readAnnotations()))
    return failure();
  findTensorParallel();
  findWholeKeys();
  findSequenceParallelRegion();
  func::FuncOp function = program.function;
  for (const Analysis::Step &step : analysis.getSteps()) {
    for (Value operand : step.op->getOperands())
      if (BlockArgument parameter = analysis.getParameterOfGradient(operand)) {
        auto attr = function.getArgAttrOfType<ShardingAttr>(parameter.getArgNumber(), names::kUpdateSharding);
        if (!attr)
          attr = function.getArgAttrOfType<ShardingAttr>(parameter.getArgNumber(), names::kSharding);
        FailureOr<TensorSharding> sharding =
            mesh.fromAttr(attr, typeOf(operand).getShape(), describe(parameter), [&] { return function.emitError(); });
        if (failed(sharding))
          return failure();
        stored[operand] = *sharding;
      }
    bool isStorage = isStorageOperation(step);
    FactorAxes axes = isStorage ? decideByOperands(step) : decideByClasses(step, region.contains(step.op));
    // Copies are made where they were summed up: the factors of the two rules are the same.
    if (isa<MakeCopiesOp>(step.op))
      if (SumCopiesOp sum = getSumOfCopies(step.op->getResult(0)))
        axes = decided.find(sum)->second;
    if (isStorage)
      for (auto [result, factors] : llvm::zip_equal(step.op->getResults(), step.rule.results))
        stored[result] = {dimsFor(axes, factors), {}, ReductionKind::sum};
    decided[step.op] = std::move(axes);
  }
  return success();
}
