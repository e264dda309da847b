//===- ExpandVocabulary.cpp - Cross-entropy over a sharded vocabulary -----===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "ExpandVocabulary.h"

using namespace mlir;
using namespace nd;

FailureOr<SmallVector<Value>> nd::expandVocabulary(Program &program) {
  SmallVector<Value> logits;
  for (Operation &op : llvm::make_early_inc_range(program.getBody().without_terminator())) {
    if (!isa<SoftmaxCrossEntropyOp, SoftmaxCrossEntropyGradOp>(op))
      continue;
    if (!llvm::is_contained(logits, op.getOperand(0)))
      logits.push_back(op.getOperand(0));
    OpBuilder builder(&op);
    FailureOr<SmallVector<Value>> values = cast<DecomposableOpInterface>(op).decompose(builder);
    if (failed(values))
      return failure();
    op.replaceAllUsesWith(*values);
    op.erase();
  }
  return logits;
}
