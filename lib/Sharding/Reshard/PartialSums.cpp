//===- PartialSums.cpp - What carries a partial sum on --------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Reshard/PartialSums.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "nd/Dialect/ND/IR/Copies.h"

using namespace mlir;
using namespace nd;

namespace {

RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

int64_t bytesOf(ValueRange values) {
  int64_t bits = 0;
  for (Value value : values)
    bits += typeOf(value).getNumElements() * typeOf(value).getElementTypeBitWidth();
  return bits / 8;
}

/// Whether what an operation computes ends, through operations on it alone, as the gradient of a parameter.
bool becomesGradient(Operation *op) {
  for (unsigned steps = 0; steps < 8 && op->getNumResults() == 1 && op->getResult(0).hasOneUse(); ++steps) {
    OpOperand &use = *op->getResult(0).use_begin();
    op = use.getOwner();
    if (isa<AdamWOp, SgdOp>(op))
      return use.getOperandNumber() == 1;
  }
  return llvm::any_of(op->getUsers(), [](Operation *user) { return isa<AdamWOp, SgdOp>(user); });
}

} // namespace

llvm::DenseMap<Operation *, AxisList> nd::findTermsOfSums(Block &body,
                                                          llvm::function_ref<AxisList(Operation *)> getSummedAxes) {
  llvm::DenseMap<Operation *, AxisList> terms;
  for (auto root : body.getOps<arith::AddFOp>()) {
    if (root->hasOneUse() && isa<arith::AddFOp>(*root->user_begin()))
      continue;
    SmallVector<Operation *> open = {root}, added;
    AxisList axes;
    while (!open.empty())
      for (Value operand : open.pop_back_val()->getOperands()) {
        Operation *op = operand.getDefiningOp();
        if (!op || !operand.hasOneUse())
          continue;
        if (isa<arith::AddFOp>(op)) {
          open.push_back(op);
          continue;
        }
        added.push_back(op);
        if (AxisList own = getSummedAxes(op); own.size() > axes.size())
          axes = own;
      }
    if (!axes.empty())
      for (Operation *op : added)
        terms[op] = axes;
  }
  return terms;
}

bool nd::comesFromAttentionGradient(Operation *op) {
  while (isa_and_nonnull<ReduceOp, ReshapeOp, TransposeOp, arith::TruncFOp, arith::ExtFOp>(op))
    op = op->getOperand(0).getDefiningOp();
  return isa_and_nonnull<AttentionGradOp>(op);
}

bool nd::hasScaleFactor(Operation *product, unsigned tensor) {
  if (!isa<arith::MulFOp>(product))
    return false;
  Value other = product->getOperand(1 - tensor);
  if (typeOf(other).getRank() == 0)
    return true;
  if (auto broadcast = other.getDefiningOp<BroadcastOp>())
    return broadcast.getInput().getType().getRank() == 0;
  DenseElementsAttr elements;
  return matchPattern(other, m_Constant(&elements)) && elements.isSplat();
}

Value nd::buildScaleFactor(OpBuilder &builder, Operation *product, unsigned tensor) {
  if (!hasScaleFactor(product, tensor))
    return {};
  Value other = product->getOperand(1 - tensor);
  if (typeOf(other).getRank() == 0)
    return other;
  if (auto broadcast = other.getDefiningOp<BroadcastOp>())
    return broadcast.getInput();
  DenseElementsAttr elements;
  matchPattern(other, m_Constant(&elements));
  auto type = RankedTensorType::get({}, elements.getElementType());
  return arith::ConstantOp::create(builder, product->getLoc(),
                                   DenseElementsAttr::get(type, elements.getSplatValue<Attribute>()));
}

bool nd::growsWhenCarriedOn(Operation *op, ArrayRef<unsigned> partial,
                            llvm::function_ref<bool(Operation *)> isReducedAnyway) {
  // Gradients of parameters are reduced once a step, those of activations for every microbatch.
  auto addsNothing = [&](Operation *user) {
    return isReducedAnyway(user) || (isa<DotGeneralOp>(user) && becomesGradient(user));
  };
  if (addsNothing(op))
    return false;
  int64_t reducedHere = 0;
  for (unsigned index : partial) {
    Value operand = op->getOperand(index);
    llvm::SmallPtrSet<Operation *, 4> users(operand.user_begin(), operand.user_end());
    int64_t carriedOn = 0;
    for (Operation *user : users)
      if (!addsNothing(user))
        carriedOn += bytesOf(user->getResults());
    if (users.size() > 1 && carriedOn > bytesOf(operand))
      return true;
    reducedHere += bytesOf(operand);
  }
  // Padding for storage is little.
  return bytesOf(op->getResults()) > (isa<PadOp>(op) ? 2 * reducedHere : reducedHere);
}

bool nd::carriesPartial(Operation *op, const ShardingRule &rule, ArrayRef<unsigned> partial,
                        llvm::function_ref<bool(Operation *)> isReducedAnyway) {
  bool linear = llvm::is_contained(rule.linear, SmallVector<unsigned, 2>(partial)) ||
                (partial.size() == 1 && hasScaleFactor(op, partial.front()));
  return linear && !growsWhenCarriedOn(op, partial, isReducedAnyway);
}
