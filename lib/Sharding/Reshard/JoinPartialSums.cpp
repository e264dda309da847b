//===- JoinPartialSums.cpp - Partial sums are added first -----------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Reshard/JoinPartialSums.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "nd/Dialect/ND/IR/Names.h"

using namespace mlir;
using namespace nd;

namespace {

/// A sum of several terms, and the operations that add them up.
class Sum {
public:
  Sum(arith::AddFOp root, const StatePlan &plan) : root(root), plan(plan) { collect(); }

  ArrayRef<Operation *> getOperations() const { return operations; }

  /// Adds partial terms first; false where no two can be.
  bool regroup() {
    if (llvm::none_of(groups, [](const Group &group) { return group.terms.size() > 1; }))
      return false;
    OpBuilder builder(root);
    SmallVector<Value> addends;
    for (const Group &group : groups)
      addends.push_back(group.terms.size() > 1 ? join(builder, group) : group.whole);
    addends.append(whole);
    Value sum = addends.front();
    for (Value addend : llvm::drop_begin(addends))
      sum = add(builder, sum, addend, root->getAttrOfType<ArrayAttr>(names::kFactorAxes));
    root.getResult().replaceAllUsesWith(sum);
    for (Operation *op : operations)
      op->erase();
    for (const Group &group : groups)
      for (Operation *widening : group.widenings)
        if (widening->use_empty())
          widening->erase();
    return true;
  }

private:
  /// Terms of one type that are partial alike.
  struct Group {
    Type type;
    const TensorSharding *state;
    SmallVector<Value> terms;
    SmallVector<Operation *> widenings; ///< of narrow terms, of which nothing is left when these are joined
    Value whole;                        ///< the first term as the sum reads it
  };

  void collect() {
    SmallVector<Value> open = {root.getResult()};
    while (!open.empty()) {
      Value value = open.pop_back_val();
      Operation *op = value.getDefiningOp();
      if (op == root || (op && isInner(value, op))) {
        operations.push_back(op);
        if (auto addition = dyn_cast<arith::AddFOp>(op))
          open.append({addition.getRhs(), addition.getLhs()});
        else
          open.push_back(op->getOperand(0));
        continue;
      }
      addTerm(value);
    }
  }

  /// Whether a value is but a part of the sum: an addition, or the rounding of one and the widening behind it.
  bool isInner(Value value, Operation *op) const {
    if (!value.hasOneUse() || !plan.getState(value).unreduced.empty())
      return false;
    if (isa<arith::AddFOp>(op))
      return true;
    if (isa<arith::TruncFOp>(op))
      return isa<arith::ExtFOp>(*value.user_begin()) && isAddition(op->getOperand(0));
    auto rounding = isa<arith::ExtFOp>(op) ? op->getOperand(0).getDefiningOp<arith::TruncFOp>() : arith::TruncFOp();
    return rounding && rounding->hasOneUse() && rounding.getIn().getType() == value.getType() &&
           isAddition(rounding.getIn());
  }

  bool isAddition(Value value) const {
    return value.hasOneUse() && value.getDefiningOp<arith::AddFOp>() && plan.getState(value).unreduced.empty();
  }

  void addTerm(Value value) {
    Value partial = value;
    if (auto widening = value.getDefiningOp<arith::ExtFOp>(); widening && value.hasOneUse())
      partial = widening.getIn();
    const TensorSharding &state = plan.getState(partial);
    if (!partial.hasOneUse() || state.unreduced.empty() || state.kind != ReductionKind::sum) {
      whole.push_back(value);
      return;
    }
    auto *group =
        llvm::find_if(groups, [&](const Group &g) { return g.type == partial.getType() && *g.state == state; });
    if (group == groups.end())
      group = groups.insert(group, {partial.getType(), &state, {}, {}, value});
    group->terms.push_back(partial);
    if (partial != value)
      group->widenings.push_back(value.getDefiningOp());
  }

  Value join(OpBuilder &builder, const Group &group) {
    Value sum = group.terms.front();
    // An elementwise operation has one factor for each dimension.
    ArrayAttr axes = plan.getMesh().toLists(group.state->dims);
    for (Value term : llvm::drop_begin(group.terms))
      sum = add(builder, sum, term, axes);
    if (group.type == root.getType())
      return sum;
    auto widened = arith::ExtFOp::create(builder, root.getLoc(), root.getType(), sum);
    widened->setAttr(names::kFactorAxes, root->getAttr(names::kFactorAxes));
    return widened;
  }

  /// An addition like the root.
  Value add(OpBuilder &builder, Value left, Value right, ArrayAttr axes) {
    auto sum = cast<arith::AddFOp>(builder.clone(*root));
    sum.getLhsMutable().assign(left);
    sum.getRhsMutable().assign(right);
    sum.getResult().setType(left.getType());
    sum->setAttr(names::kFactorAxes, axes);
    return sum;
  }

  arith::AddFOp root;
  const StatePlan &plan;
  SmallVector<Operation *> operations; ///< that the sum consists of; what reads a value before what makes it
  SmallVector<Group> groups;
  SmallVector<Value> whole;
};

} // namespace

bool nd::joinPartialSums(Program &program, const StatePlan &plan) {
  SmallVector<arith::AddFOp> additions;
  for (auto addition : program.getBody().getOps<arith::AddFOp>())
    // Sums of numbers are partial as a whole (StatePlan).
    if (cast<RankedTensorType>(addition.getType()).getRank() > 0 &&
        plan.getState(addition.getResult()).unreduced.empty())
      additions.push_back(addition);
  llvm::DenseSet<Operation *> inner;
  bool changed = false;
  for (arith::AddFOp addition : llvm::reverse(additions)) {
    if (inner.contains(addition))
      continue;
    Sum sum(addition, plan);
    inner.insert_range(llvm::drop_begin(sum.getOperations()));
    changed |= sum.regroup();
  }
  return changed;
}
