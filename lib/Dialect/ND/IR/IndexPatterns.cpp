//===- IndexPatterns.cpp - Lookups of what is known -----------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// A single row at a constant place is a slice: so exporters write `x[:, [-1]]`, which cuts a value out of a fused
// product.
//
//===----------------------------------------------------------------------===//

#include "Patterns.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace nd;

namespace {

struct TakeOfConstantRow final : PlainTensorPattern<TakeOp> {
  using PlainTensorPattern::PlainTensorPattern;

  LogicalResult rewrite(TakeOp op, PatternRewriter &rewriter) const override {
    DenseIntElementsAttr indices;
    if (op.getIndices().getType().getNumElements() != 1 || op.getPaddingIdx() || op.getShardAxes() ||
        !matchPattern(op.getIndices(), m_Constant(&indices)))
      return failure();
    int64_t row = (*indices.begin()).getSExtValue();
    if (row < 0 || row >= op.getTable().getType().getDimSize(0))
      return failure();
    Value slice = nd::slice(rewriter, op.getLoc(), op.getTable(), 0, row, 1);
    rewriter.replaceOp(op, nd::reshape(rewriter, op.getLoc(), slice, op.getType().getShape()));
    return success();
  }
};

} // namespace

void nd::populateIndexPatterns(RewritePatternSet &patterns) { patterns.add<TakeOfConstantRow>(patterns.getContext()); }
