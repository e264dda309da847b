//===- RecoverMask.cpp - Attention masks as what they mean ----------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Analysis/MaskPredicate.h"
#include "Analysis/Positions.h"
#include "Match.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace nd;
using namespace nd::onnx;

namespace {

bool isConstantInt(Value value, int64_t number) {
  std::optional<Linear> linear = analyzeLinear(value);
  return linear && linear->isConstant() && linear->offset == number;
}

/// positions[:, i] - positions[:, i - 1], anything at i = 0: the position before comes from a concatenation.
bool isDifferenceOf(Value value, Value positions) {
  auto difference = value.getDefiningOp<arith::SubIOp>();
  if (!difference)
    return false;
  int64_t length = tensorTypeOf(positions).getDimSize(1);
  ConcatOp padded;
  auto partAt = [&](Value part, int64_t start) {
    if (start == 1 && part == positions)
      return true;
    auto slice = part.getDefiningOp<SliceOp>();
    auto concat = slice ? slice.getInput().getDefiningOp<ConcatOp>() : ConcatOp();
    if (!concat || concat.getDim() != 1 || concat.getInputs().size() != 2 || concat.getInputs()[1] != positions ||
        tensorTypeOf(concat).getDimSize(1) != length + 1 || slice.getStarts() != ArrayRef<int64_t>{0, start} ||
        tensorTypeOf(slice).getDimSize(1) != length || slice.getStrides()[1] != 1)
      return false;
    bool isSame = !padded || padded == concat;
    padded = concat;
    return isSame;
  };
  return partAt(difference.getLhs(), 1) && partAt(difference.getRhs(), 0);
}

/// documents = cumsum(positions[i] - positions[i - 1] != 1): inside a document positions are consecutive, so that
/// comparing indices there is comparing positions.
bool documentsFollow(Value documents, Value positions) {
  auto sum = documents.getDefiningOp<CumSumOp>();
  if (!sum || sum.getExclusive() || sum.getReverse() || sum.getDim() != 1)
    return false;
  auto widened = sum.getInput().getDefiningOp<arith::ExtUIOp>();
  if (!widened)
    return false;
  Value starts = widened.getIn();
  bool negated = false;
  if (auto flip = starts.getDefiningOp<arith::XOrIOp>()) {
    DenseElementsAttr ones;
    if (!matchPattern(flip.getRhs(), m_Constant(&ones)) || !ones.isSplat() || !ones.getSplatValue<bool>())
      return false;
    negated = true;
    starts = flip.getLhs();
  }
  auto compare = starts.getDefiningOp<arith::CmpIOp>();
  auto expected = negated ? arith::CmpIPredicate::eq : arith::CmpIPredicate::ne;
  return compare && compare.getPredicate() == expected && isConstantInt(compare.getRhs(), 1) &&
         isDifferenceOf(compare.getLhs(), positions);
}

/// The conjunction of all padding terms, as booleans [B, T].
Value paddingOf(const MaskPredicate &predicate, AttentionOp op, PatternRewriter &rewriter) {
  SmallVector<int64_t> shape = {op.getKey().getType().getDimSize(0), op.getKey().getType().getDimSize(2)};
  Value result = op.getKeyPadding();
  for (const MaskPredicate::Padding &padding : predicate.paddings) {
    // Batch comes before keys, or is not there; other dimensions are of size 1.
    SmallVector<int64_t> kept, dims;
    for (auto [dim, size] : llvm::zip_equal(padding.dims, tensorTypeOf(padding.value).getShape())) {
      if (dim == -1 || (dim == 0 && size != shape[0]))
        continue;
      kept.push_back(size);
      dims.push_back(dim == 0 ? 0 : 1);
    }
    if (!llvm::is_sorted(dims) || !llvm::is_contained(dims, 1))
      return {};
    Value term =
        nd::broadcastTo(rewriter, op.getLoc(), nd::reshape(rewriter, op.getLoc(), padding.value, kept), shape, dims);
    result = result ? Value(arith::AndIOp::create(rewriter, op.getLoc(), result, term)) : term;
  }
  return result;
}

/// A mask operand that is a predicate over positions, documents and padding becomes that predicate.
struct RecoverMask : OpRewritePattern<AttentionOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(AttentionOp op, PatternRewriter &rewriter) const override {
    if (!op.getMask())
      return rewriter.notifyMatchFailure(op, "has no mask");
    int64_t queries = op.getQuery().getType().getDimSize(2), keys = op.getKey().getType().getDimSize(2);
    std::optional<MaskPredicate> predicate = analyzeMask(op.getMask(), queries, keys);
    if (!predicate)
      return rewriter.notifyMatchFailure(op, "the mask is general");
    bool byPosition = predicate->causal || predicate->window;
    if (predicate->positions && predicate->documents && documentsFollow(predicate->documents, predicate->positions))
      predicate->positions = {};
    // What the operation says already is about indices, or about its own positions.
    bool alreadyByPosition = op.getCausal() || op.getWindow() > 0;
    if ((byPosition && alreadyByPosition && predicate->positions != op.getPositions()) ||
        (predicate->documents && op.getDocuments() && predicate->documents != op.getDocuments()) ||
        (predicate->documents && tensorTypeOf(predicate->documents).getShape() !=
                                     ArrayRef<int64_t>{op.getQuery().getType().getDimSize(0), keys}) ||
        (predicate->positions && tensorTypeOf(predicate->positions).getShape() !=
                                     ArrayRef<int64_t>{op.getQuery().getType().getDimSize(0), keys}))
      return rewriter.notifyMatchFailure(op, "the mask and the operation compare different positions");
    Value padding = op.getKeyPadding();
    if (!predicate->paddings.empty() && !(padding = paddingOf(*predicate, op, rewriter)))
      return rewriter.notifyMatchFailure(op, "the padding is not of keys");
    int64_t window = op.getWindow();
    if (predicate->window)
      window = window ? std::min(window, predicate->window) : predicate->window;
    Value positions = byPosition && !alreadyByPosition ? predicate->positions : op.getPositions();
    Value documents = predicate->documents ? predicate->documents : op.getDocuments();
    auto result =
        AttentionOp::create(rewriter, op.getLoc(), op.getResult().getType(), op.getLse().getType(), op.getQuery(),
                            op.getKey(), op.getValue(), positions, documents, padding, /*mask=*/Value(), op.getScale(),
                            op.getCausal() || predicate->causal, window, op.getSoftcap());
    result->setDiscardableAttrs(op->getDiscardableAttrDictionary());
    rewriter.replaceOp(op, result);
    return success();
  }
};

} // namespace

void nd::onnx::populateMaskPatterns(RewritePatternSet &patterns) { patterns.add<RecoverMask>(patterns.getContext()); }
