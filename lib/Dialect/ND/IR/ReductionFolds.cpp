//===- ReductionFolds.cpp - Reductions: folders and patterns --------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Patterns.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace nd;

//===----------------------------------------------------------------------===//
// reduce
//===----------------------------------------------------------------------===//

namespace {

/// A whole number in a float format; nothing when the format has no such number.
std::optional<APFloat> exactly(int64_t count, const llvm::fltSemantics &format) {
  APFloat number(format);
  if (number.convertFromAPInt(APInt(64, count), /*IsSigned=*/true, APFloat::rmNearestTiesToEven) != APFloat::opOK)
    return std::nullopt;
  return number;
}

/// Whether the element type has that whole number, or wraps as the sum itself would.
bool hasNumber(Type elementType, int64_t count) {
  auto floatType = dyn_cast<FloatType>(elementType);
  return !floatType || exactly(count, floatType.getFloatSemantics());
}

/// `value` times a whole number that its element type has.
Value multiply(OpBuilder &builder, Location loc, Value value, int64_t count) {
  if (count == 1)
    return value;
  RankedTensorType type = tensorTypeOf(value);
  if (auto floatType = dyn_cast<FloatType>(type.getElementType())) {
    DenseElementsAttr factor = DenseElementsAttr::get(type, *exactly(count, floatType.getFloatSemantics()));
    return arith::MulFOp::create(builder, loc, value, arith::ConstantOp::create(builder, loc, factor));
  }
  APInt factor = APInt(64, count).sextOrTrunc(type.getElementTypeBitWidth());
  return arith::MulIOp::create(builder, loc, value,
                               arith::ConstantOp::create(builder, loc, DenseElementsAttr::get(type, factor)));
}

struct ReduceOfReduce final : PlainTensorPattern<ReduceOp> {
  using PlainTensorPattern::PlainTensorPattern;

  LogicalResult rewrite(ReduceOp op, PatternRewriter &rewriter) const override {
    auto inner = plainProducer<ReduceOp>(op.getInput());
    if (!inner || inner.getKind() != op.getKind() || !inner->hasOneUse())
      return failure();
    // Dimensions that the inner reduction leaves, by their number in its result.
    SmallVector<int64_t> left, dims(inner.getDims());
    for (int64_t dim : llvm::seq(inner.getInput().getType().getRank()))
      if (!llvm::is_contained(inner.getDims(), dim))
        left.push_back(dim);
    for (int64_t dim : op.getDims())
      dims.push_back(left[dim]);
    llvm::sort(dims);
    rewriter.replaceOpWithNewOp<ReduceOp>(op, op.getType(), op.getKind(), inner.getInput(), dims);
    return success();
  }
};

struct ReduceOfUnitDims final : PlainTensorPattern<ReduceOp> {
  using PlainTensorPattern::PlainTensorPattern;

  LogicalResult rewrite(ReduceOp op, PatternRewriter &rewriter) const override {
    RankedTensorType type = op.getInput().getType();
    if (llvm::any_of(op.getDims(), [&](int64_t dim) { return type.getDimSize(dim) != 1; }))
      return failure();
    rewriter.replaceOpWithNewOp<ReshapeOp>(op, op.getType(), op.getInput());
    return success();
  }
};

/// Reduces before repeating: over a new dimension a maximum is the element, a sum the element times the size.
struct ReduceOfBroadcast final : PlainTensorPattern<ReduceOp> {
  using PlainTensorPattern::PlainTensorPattern;

  LogicalResult rewrite(ReduceOp op, PatternRewriter &rewriter) const override {
    auto broadcast = plainProducer<BroadcastOp>(op.getInput());
    if (!broadcast)
      return failure();
    int64_t count = 1;
    SmallVector<int64_t> reduced;
    for (int64_t dim : op.getDims()) {
      const auto *position = llvm::find(broadcast.getDims(), dim);
      if (position != broadcast.getDims().end())
        reduced.push_back(std::distance(broadcast.getDims().begin(), position));
      else
        count *= broadcast.getType().getDimSize(dim);
    }
    bool sum = op.getKind() == ReductionKind::sum;
    if (count == 0 || (sum && !hasNumber(op.getType().getElementType(), count)))
      return rewriter.notifyMatchFailure(op, "the sum is no exact multiple of the element");
    Value value = nd::reduce(rewriter, op.getLoc(), op.getKind(), broadcast.getInput(), reduced);
    if (sum)
      value = multiply(rewriter, op.getLoc(), value, count);
    SmallVector<int64_t> dims;
    for (int64_t dim : broadcast.getDims())
      if (!llvm::is_contained(op.getDims(), dim))
        dims.push_back(dim - llvm::count_if(op.getDims(), [&](int64_t gone) { return gone < dim; }));
    rewriter.replaceOp(op, broadcastTo(rewriter, op.getLoc(), value, op.getType().getShape(), dims));
    return success();
  }
};

/// The dimensions that stay keep their order, so the reduction can read the operand as it is.
struct ReduceOfTranspose final : PlainTensorPattern<ReduceOp> {
  using PlainTensorPattern::PlainTensorPattern;

  LogicalResult rewrite(ReduceOp op, PatternRewriter &rewriter) const override {
    auto transpose = plainProducer<TransposeOp>(op.getInput());
    if (!transpose)
      return failure();
    SmallVector<int64_t> dims, kept;
    for (auto [dim, source] : llvm::enumerate(transpose.getPermutation()))
      (llvm::is_contained(op.getDims(), static_cast<int64_t>(dim)) ? dims : kept).push_back(source);
    if (!llvm::is_sorted(kept))
      return rewriter.notifyMatchFailure(op, "dimensions that stay change places");
    llvm::sort(dims);
    rewriter.replaceOpWithNewOp<ReduceOp>(op, op.getType(), op.getKind(), transpose.getInput(), dims);
    return success();
  }
};

} // namespace

OpFoldResult ReduceOp::fold(FoldAdaptor adaptor) {
  if (getInput().getType() == getType())
    return getInput();
  if (getKind() != ReductionKind::sum)
    return splatOfType(adaptor.getInput(), getType());
  auto elements = dyn_cast_or_null<DenseElementsAttr>(adaptor.getInput());
  if (!elements || !elements.isSplat())
    return {};
  int64_t count = 1;
  for (int64_t dim : getDims())
    count *= getInput().getType().getDimSize(dim);
  if (isa<IntegerType>(elements.getElementType())) {
    APInt number = elements.getSplatValue<APInt>();
    return DenseElementsAttr::get(getType(), number * APInt(64, count).sextOrTrunc(number.getBitWidth()));
  }
  APFloat number = elements.getSplatValue<APFloat>();
  std::optional<APFloat> factor = exactly(count, number.getSemantics());
  if (!factor || count == 0)
    return {};
  number.multiply(*factor, APFloat::rmNearestTiesToEven);
  return DenseElementsAttr::get(getType(), number);
}

void ReduceOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<ReduceOfReduce, ReduceOfUnitDims, ReduceOfBroadcast, ReduceOfTranspose>(context);
}

//===----------------------------------------------------------------------===//
// dot_general
//===----------------------------------------------------------------------===//

namespace {

/// How an operand of a contraction is read.
struct Side {
  Value operand;
  SmallVector<int64_t> batch, contract, free;

  /// Reads the operand of a transpose instead of its result, where the free dimensions keep their order.
  bool lookThroughTranspose() {
    auto transpose = plainProducer<TransposeOp>(operand);
    if (!transpose)
      return false;
    auto map = [&](ArrayRef<int64_t> dims) {
      SmallVector<int64_t> mapped;
      for (int64_t dim : dims)
        mapped.push_back(transpose.getPermutation()[dim]);
      return mapped;
    };
    if (!llvm::is_sorted(map(free)))
      return false;
    operand = transpose.getInput();
    batch = map(batch);
    contract = map(contract);
    free = map(free);
    return true;
  }
};

struct DotOfTranspose final : PlainTensorPattern<DotGeneralOp> {
  using PlainTensorPattern::PlainTensorPattern;

  LogicalResult rewrite(DotGeneralOp op, PatternRewriter &rewriter) const override {
    Side lhs = {op.getLhs(), SmallVector<int64_t>(op.getLhsBatch()), SmallVector<int64_t>(op.getLhsContract()),
                op.getLhsFree()};
    Side rhs = {op.getRhs(), SmallVector<int64_t>(op.getRhsBatch()), SmallVector<int64_t>(op.getRhsContract()),
                op.getRhsFree()};
    bool left = lhs.lookThroughTranspose(), right = rhs.lookThroughTranspose();
    if (!left && !right)
      return failure();
    rewriter.replaceOpWithNewOp<DotGeneralOp>(op, op.getType(), lhs.operand, rhs.operand, lhs.batch, rhs.batch,
                                              lhs.contract, rhs.contract);
    return success();
  }
};

/// Contracted pairs in the order of lhs: equal contractions are then equal text.
struct SortContracted final : OpRewritePattern<DotGeneralOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(DotGeneralOp op, PatternRewriter &rewriter) const override {
    if (llvm::is_sorted(op.getLhsContract()))
      return failure();
    auto pairs = llvm::to_vector(llvm::zip_equal(op.getLhsContract(), op.getRhsContract()));
    SmallVector<std::pair<int64_t, int64_t>> sorted;
    for (auto [lhs, rhs] : pairs)
      sorted.push_back({lhs, rhs});
    llvm::sort(sorted);
    rewriter.modifyOpInPlace(op, [&] {
      op.setLhsContract(llvm::to_vector(llvm::make_first_range(sorted)));
      op.setRhsContract(llvm::to_vector(llvm::make_second_range(sorted)));
    });
    return success();
  }
};

/// A transpose that swaps the free dimensions of the two operands swaps the operands.
struct TransposeOfDot final : PlainTensorPattern<TransposeOp> {
  using PlainTensorPattern::PlainTensorPattern;

  LogicalResult rewrite(TransposeOp op, PatternRewriter &rewriter) const override {
    auto dot = plainProducer<DotGeneralOp>(op.getInput());
    if (!dot || !dot->hasOneUse())
      return failure();
    int64_t batch = dot.getLhsBatch().size(), lhsFree = dot.getLhsFree().size(), rhsFree = dot.getRhsFree().size();
    SmallVector<int64_t> swap = sequence(batch);
    llvm::append_range(swap, sequence(rhsFree, batch + lhsFree));
    llvm::append_range(swap, sequence(lhsFree, batch));
    if (op.getPermutation() != ArrayRef<int64_t>(swap))
      return failure();
    rewriter.replaceOpWithNewOp<DotGeneralOp>(op, op.getType(), dot.getRhs(), dot.getLhs(), dot.getRhsBatch(),
                                              dot.getLhsBatch(), dot.getRhsContract(), dot.getLhsContract());
    return success();
  }
};

} // namespace

void DotGeneralOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<DotOfTranspose, SortContracted, TransposeOfDot>(context);
}
