//===- ExpandVocabulary.cpp - Cross-entropy over a sharded vocabulary -----===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Plan/ExpandVocabulary.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "nd/Dialect/ND/IR/Builders.h"
#include "nd/Dialect/ND/IR/Names.h"

using namespace mlir;
using namespace nd;

namespace {

/// The logits where there are some, and minus infinity behind the vocabulary.
Value boundVocabulary(OpBuilder &builder, Location loc, Value logits) {
  ArrayRef<int64_t> shape = tensorTypeOf(logits).getShape();
  Value place = iota(builder, loc, builder.getI32Type(), shape, shape.size() - 1);
  Value isWord = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, place,
                                       intSplatLike(builder, loc, place, shape.back()));
  return select(builder, loc, isWord, logits,
                splatLike(builder, loc, logits, -std::numeric_limits<double>::infinity()));
}

} // namespace

FailureOr<SmallVector<Value>> nd::expandVocabulary(Program &program, int64_t ranks) {
  SmallVector<Value> logits;
  for (Operation &op : llvm::make_early_inc_range(program.getBody().without_terminator())) {
    if (!isa<SoftmaxCrossEntropyOp, SoftmaxCrossEntropyGradOp>(op))
      continue;
    if (!llvm::is_contained(logits, op.getOperand(0)))
      logits.push_back(op.getOperand(0));
    OpBuilder builder(&op);
    if (tensorTypeOf(op.getOperand(0)).getShape().back() % ranks != 0)
      op.setOperand(0, boundVocabulary(builder, op.getLoc(), op.getOperand(0)));
    if (Operation *product = op.getOperand(0).getDefiningOp())
      product->setAttr(names::kLogitsOf, builder.getUnitAttr());
    FailureOr<SmallVector<Value>> values = cast<DecomposableOpInterface>(op).decompose(builder);
    if (failed(values))
      return failure();
    op.replaceAllUsesWith(*values);
    op.erase();
  }
  return logits;
}
