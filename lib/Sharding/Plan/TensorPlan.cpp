//===- TensorPlan.cpp - What tensor parallelism shards --------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Plan/TensorPlan.h"
#include "nd/Dialect/ND/IR/Names.h"

using namespace mlir;
using namespace nd;

namespace {

RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

} // namespace

TensorPlan::TensorPlan(Program &program, const Analysis &analysis, ArrayRef<Value> logits)
    : program(program), analysis(analysis), classes(analysis.getClasses()), logits(logits) {
  readWeights();
  readOperations();
}

void TensorPlan::readWeights() {
  for (BlockArgument argument : program.getBody().getArguments()) {
    if (names::argKind(program.function, argument.getArgNumber()) != names::kind::kWeight)
      continue;
    llvm::SmallDenseSet<Id, 4> seen;
    for (int64_t dim : llvm::seq(typeOf(argument).getRank()))
      for (Id id : classes.getDim(argument, dim)) {
        Use &use = uses[id];
        if (!seen.insert(id).second) {
          use.blocked = true;
          continue;
        }
        if (use.covered == 0)
          use.order = uses.size();
        use.covered += typeOf(argument).getNumElements();
        weightsOf[id].push_back(argument);
      }
  }
}

void TensorPlan::readOperations() {
  for (const Analysis::Step &step : analysis.getSteps()) {
    bool isProduct = isa<DotGeneralOp>(step.op) && llvm::any_of(step.op->getOperands(), [&](Value operand) {
                       return getWeightBehind(operand, program.function) != nullptr;
                     });
    for (auto [index, factor] : llvm::enumerate(step.rule.factors))
      for (Id id : classes.getFactor(step.op, index)) {
        auto it = uses.find(id);
        if (it == uses.end())
          continue;
        Use &use = it->second;
        use.blocked |= factor.kind == FactorKind::NeedReplication || classes.isTangled(id);
        if (factor.kind == FactorKind::Reduction && analysis.isForward(step.op))
          for (Value result : step.op->getResults())
            use.reduced += typeOf(result).getNumElements();
        if (isProduct && analysis.isForward(step.op))
          (factor.kind == FactorKind::Reduction ? use.contracted : use.made) = true;
      }
  }
}

bool TensorPlan::take(Id id, Choice choice) {
  if (choices.contains(id))
    return true;
  ArrayRef<BlockArgument> weights = weightsOf[id];
  // The minor part of a head dimension shares its weights with the major part.
  bool isFree = choice.majorParts > 1 ||
                llvm::none_of(weights, [&](BlockArgument weight) { return takenWeights.contains(weight); });
  if (!isFree || uses[id].blocked)
    return false;
  takenWeights.insert(weights.begin(), weights.end());
  choices[id] = choice;
  return true;
}

void TensorPlan::takeVocabulary() {
  int64_t size = 0;
  for (Value value : logits)
    for (Id id : classes.getDim(value, typeOf(value).getRank() - 1)) {
      size = typeOf(value).getShape().back();
      take(id, {1, 0});
      break; // the major part of a vocabulary that some reshape splits
    }
  for (const Analysis::Step &step : analysis.getSteps())
    if (auto lookup = dyn_cast<TakeOp>(step.op))
      if (getWeightBehind(lookup.getTable(), program.function) && lookup.getTable().getType().getDimSize(0) == size)
        if (DimensionClasses::Ids rows = classes.getDim(lookup.getTable(), 0); !rows.empty())
          take(rows.front(), {1, 0});
}

void TensorPlan::takeHeads(AttentionOp attention, int64_t size) {
  DimensionClasses::Ids keyHeads = classes.getDim(attention.getKey(), 1);
  DimensionClasses::Ids queryHeads = classes.getDim(attention.getQuery(), 1);
  if (queryHeads.empty())
    return;
  int64_t keys = attention.getKey().getType().getDimSize(1);
  int64_t groups = attention.getQuery().getType().getDimSize(1) / keys;
  if (keys % size == 0 || groups == 1) {
    take(queryHeads.front(), {1, 0});
  } else if (size % keys == 0 && groups % (size / keys) == 0) {
    // One list covers both: each rank has one kv head, and some of the query heads that read it.
    bool taken = keyHeads.empty() || take(keyHeads.front(), {1, keys});
    if (taken && queryHeads.size() > keyHeads.size())
      take(queryHeads[keyHeads.size()], {keys, size / keys});
  }
}

void TensorPlan::takePairs() {
  SmallVector<Id> candidates;
  for (auto &[id, use] : uses)
    if (use.made && use.contracted && !use.blocked && !choices.contains(id))
      candidates.push_back(id);
  llvm::sort(candidates, [&](Id a, Id b) {
    const Use &x = uses[a], &y = uses[b];
    return std::tuple(-x.covered, x.reduced, x.order) < std::tuple(-y.covered, y.reduced, y.order);
  });
  for (Id id : candidates)
    take(id, {1, 0});
}

void TensorPlan::run(int64_t size) {
  takeVocabulary();
  for (const Analysis::Step &step : analysis.getSteps())
    if (auto attention = dyn_cast<AttentionOp>(step.op))
      takeHeads(attention, size);
  takePairs();
}
