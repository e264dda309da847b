//===- RecoverRope.cpp - Rotary embedding written as its parts ------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// x * cos + rotate(x) * sin, where rotate maps pairs (a, b) to (-b, a): pairs are halves of the last dimension, or
// neighbours (interleaved). The tables repeat their values for both elements of a pair; nd.rope wants them once.
//
//===----------------------------------------------------------------------===//

#include "Analysis/Positions.h"
#include "Match.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace nd;
using namespace nd::onnx;

namespace {

/// A slice of the last dimension alone.
struct LastSlice {
  Value input;
  int64_t start, stride, size;
};

std::optional<LastSlice> matchLastSlice(Value value) {
  auto slice = value.getDefiningOp<SliceOp>();
  if (!slice)
    return std::nullopt;
  RankedTensorType from = slice.getInput().getType(), to = tensorTypeOf(value);
  int64_t last = from.getRank() - 1;
  for (int64_t dim = 0; dim < last; ++dim)
    if (from.getDimSize(dim) != to.getDimSize(dim))
      return std::nullopt;
  return LastSlice{slice.getInput(), slice.getStarts()[last], slice.getStrides()[last], to.getDimSize(last)};
}

/// -x, also as a product with -1.
Value matchNegated(Value value) {
  if (auto neg = value.getDefiningOp<arith::NegFOp>())
    return neg.getOperand();
  std::optional<Scaled> scaled = matchScaled(value);
  return scaled && scaled->factor == -1 ? scaled->base : Value();
}

/// The rotation of elements start .. start + width of `input`'s last dimension.
struct Rotated {
  Value input;
  int64_t start, width;
  bool interleaved;

  /// Whether `value` is those elements.
  bool isOf(Value value) const {
    if (value == input)
      return start == 0 && width == tensorTypeOf(input).getShape().back();
    std::optional<LastSlice> slice = matchLastSlice(value);
    return slice && slice->input == input && slice->start == start && slice->size == width && slice->stride == 1;
  }
};

/// concat(-x[half:], x[:half]), or the same of even and odd elements, woven together.
std::optional<Rotated> matchRotated(Value value) {
  bool interleaved = false;
  if (auto woven = value.getDefiningOp<ReshapeOp>()) {
    ArrayRef<int64_t> from = woven.getInput().getType().getShape(), to = tensorTypeOf(value).getShape();
    interleaved = from.size() == to.size() + 1 && from.back() == 2 && from.drop_back(2) == to.drop_back();
    if (!interleaved)
      return std::nullopt;
    value = woven.getInput();
  }
  auto concat = value.getDefiningOp<ConcatOp>();
  if (!concat || concat.getInputs().size() != 2 || int64_t(concat.getDim()) != tensorTypeOf(value).getRank() - 1)
    return std::nullopt;
  auto part = [&](Value operand) { return interleaved ? lookThroughUnitReshapes(operand) : operand; };
  Value negated = matchNegated(part(concat.getInputs()[0]));
  if (!negated)
    return std::nullopt;
  auto first = matchLastSlice(part(concat.getInputs()[1])), second = matchLastSlice(part(negated));
  if (!first || !second || first->input != second->input)
    return std::nullopt;
  int64_t half = first->size;
  bool fits = second->size == half && second->start == first->start + (interleaved ? 1 : half);
  if (half > 1)
    fits &= first->stride == (interleaved ? 2 : 1) && second->stride == first->stride;
  return fits ? std::optional(Rotated{first->input, first->start, 2 * half, interleaved}) : std::nullopt;
}

/// Rebuilds a table whose last dimension holds every value twice with each value once; null when it does not.
class TableHalver {
public:
  TableHalver(OpBuilder &builder, bool interleaved) : builder(builder), interleaved(interleaved) {}

  Value halve(Value table, unsigned depth = 0) {
    Operation *op = table.getDefiningOp();
    RankedTensorType type = tensorTypeOf(table);
    if (!op || depth > 16 || type.getRank() == 0 || type.getShape().back() % 2 != 0)
      return {};
    int64_t last = type.getRank() - 1, half = type.getShape().back() / 2;
    SmallVector<int64_t> shape(type.getShape());
    shape[last] = half;
    DenseElementsAttr elements;
    if (matchPattern(op, m_Constant(&elements)))
      return halveConstant(op->getLoc(), elements, type.clone(shape));
    if (auto concat = dyn_cast<ConcatOp>(op); concat && !interleaved) {
      bool twice = concat.getInputs().size() == 2 && int64_t(concat.getDim()) == last &&
                   concat.getInputs()[0] == concat.getInputs()[1];
      return twice ? concat.getInputs()[0] : Value();
    }
    if (auto broadcast = dyn_cast<BroadcastOp>(op)) {
      if (!llvm::is_contained(broadcast.getDims(), last))
        return BroadcastOp::create(builder, op->getLoc(), type.clone(shape), broadcast.getInput(), broadcast.getDims());
      Value input = halve(broadcast.getInput(), depth + 1);
      return input ? Value(BroadcastOp::create(builder, op->getLoc(), type.clone(shape), input, broadcast.getDims()))
                   : Value();
    }
    if (auto reshape = dyn_cast<ReshapeOp>(op))
      return halveReshape(reshape, shape, depth);
    if (op->getNumResults() != 1 || op->getNumRegions() != 0 ||
        !isa<arith::ArithDialect, math::MathDialect>(op->getDialect()))
      return {};
    // Elementwise: the same on halved operands.
    SmallVector<Value> operands;
    for (Value operand : op->getOperands()) {
      Value halved = tensorTypeOf(operand).getShape() == type.getShape() ? halve(operand, depth + 1) : Value();
      if (!halved)
        return {};
      operands.push_back(halved);
    }
    OperationState state(op->getLoc(), op->getName(), operands, TypeRange(type.clone(shape)), op->getAttrs());
    return builder.create(state)->getResult(0);
  }

private:
  Value halveConstant(Location loc, DenseElementsAttr elements, RankedTensorType type) {
    if (elements.isSplat())
      return arith::ConstantOp::create(builder, loc, elements.resizeSplat(type));
    int64_t half = type.getShape().back();
    SmallVector<Attribute> all(elements.getValues<Attribute>()), kept;
    for (size_t row = 0; row < all.size(); row += 2 * half)
      for (int64_t i = 0; i < half; ++i) {
        size_t first = row + (interleaved ? 2 * i : i), second = row + (interleaved ? 2 * i + 1 : i + half);
        if (all[first] != all[second])
          return {};
        kept.push_back(all[first]);
      }
    return arith::ConstantOp::create(builder, loc, DenseElementsAttr::get(type, kept));
  }

  Value halveReshape(ReshapeOp reshape, ArrayRef<int64_t> shape, unsigned depth) {
    RankedTensorType from = reshape.getInput().getType();
    ArrayRef<int64_t> fromShape = from.getShape();
    // repeat_interleave: [..., half] repeated along a new last dimension of 2, which is merged.
    if (interleaved && fromShape.size() >= 2 && fromShape.back() == 2 &&
        fromShape[fromShape.size() - 2] == shape.back() && unitReshapeMap(fromShape.drop_back(2), shape.drop_back()))
      if (auto pairs = reshape.getInput().getDefiningOp<BroadcastOp>();
          pairs && pairs.getDims() == ArrayRef<int64_t>(nd::sequence(fromShape.size() - 1)))
        return nd::reshape(builder, reshape.getLoc(), pairs.getInput(), shape);
    if (fromShape.empty() || fromShape.back() != 2 * shape.back() ||
        !unitReshapeMap(fromShape, tensorTypeOf(reshape).getShape()))
      return {};
    Value input = halve(reshape.getInput(), depth + 1);
    return input ? nd::reshape(builder, reshape.getLoc(), input, shape) : Value();
  }

  OpBuilder &builder;
  bool interleaved;
};

/// A table [B, S, R] at the shape of x [.., R]: which dimensions of x are batch and sequence.
struct Table {
  Value value; // [B, S, R / 2]
  int64_t sequenceDim;
};

struct RecoverRope : OpRewritePattern<arith::AddFOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::AddFOp op, PatternRewriter &rewriter) const override {
    auto type = dyn_cast<RankedTensorType>(op.getType());
    if (!type || type.getRank() != 4)
      return rewriter.notifyMatchFailure(op, "not of four dimensions");
    Value x, cos, sin;
    bool interleaved = false;
    bool matched = eitherOrder(op, [&](Value straight, Value turned) {
      auto first = straight.getDefiningOp<arith::MulFOp>(), second = turned.getDefiningOp<arith::MulFOp>();
      if (!first || !second)
        return false;
      return eitherOrder(second, [&](Value rotated, Value table) {
        std::optional<Rotated> rotation = matchRotated(rotated);
        if (!rotation)
          return false;
        sin = table, interleaved = rotation->interleaved;
        return eitherOrder(first, [&](Value operand, Value otherTable) {
          x = operand, cos = otherTable;
          return rotation->isOf(operand);
        });
      });
    });
    if (!matched)
      return rewriter.notifyMatchFailure(op, "not x * cos + rotate(x) * sin");
    auto cosTable = tableOf(cos, interleaved, rewriter), sinTable = tableOf(sin, interleaved, rewriter);
    if (!cosTable || !sinTable || cosTable->sequenceDim != sinTable->sequenceDim)
      return rewriter.notifyMatchFailure(op, "the tables are not of positions, or differ within pairs");
    // nd.rope is on [B, H, S, D]; a model may rotate [B, S, H, D].
    bool swaps = cosTable->sequenceDim == 1;
    Value input = swaps ? nd::transpose(rewriter, op.getLoc(), x, {0, 2, 1, 3}) : x;
    Value rope = RopeOp::create(rewriter, op.getLoc(), input, cosTable->value, sinTable->value, interleaved);
    rewriter.replaceOp(op, swaps ? nd::transpose(rewriter, op.getLoc(), rope, {0, 2, 1, 3}) : rope);
    return success();
  }

private:
  /// A table at [B, H, S, R] or [B, S, H, R] as [B, S, R / 2]: the dimension that it repeats along is the heads'.
  static std::optional<Table> tableOf(Value table, bool interleaved, PatternRewriter &rewriter) {
    ArrayRef<int64_t> shape = tensorTypeOf(table).getShape();
    auto broadcast = table.getDefiningOp<BroadcastOp>();
    SmallVector<int64_t> dims =
        broadcast ? SmallVector<int64_t>(broadcast.getDims()) : SmallVector<int64_t>{0, 1, 2, 3};
    Value value = broadcast ? broadcast.getInput() : table;
    bool hasFirst = llvm::is_contained(dims, 1) && shape[1] != 1,
         hasSecond = llvm::is_contained(dims, 2) && shape[2] != 1;
    if ((hasFirst && hasSecond) || !llvm::is_contained(dims, 3))
      return std::nullopt;
    int64_t sequence = hasFirst ? 1 : 2;
    Value halved = TableHalver(rewriter, interleaved).halve(value);
    if (!halved)
      return std::nullopt;
    // Drop dimension H (of size 1), then repeat what is missing of B and S.
    SmallVector<int64_t> kept, keptDims;
    ArrayRef<int64_t> halvedShape = tensorTypeOf(halved).getShape();
    for (auto [i, dim] : llvm::enumerate(dims)) {
      if (dim == (sequence == 1 ? 2 : 1))
        continue;
      kept.push_back(halvedShape[i]);
      keptDims.push_back(dim == 0 ? 0 : dim == 3 ? 2 : 1);
    }
    SmallVector<int64_t> target = {shape[0], shape[sequence], shape[3] / 2};
    value = nd::reshape(rewriter, table.getLoc(), halved, kept);
    return Table{nd::broadcastTo(rewriter, table.getLoc(), value, target, keptDims), sequence};
  }
};

/// concat(rope(x[..., :R]), x[..., R:]): only the first R elements are rotated.
struct RecoverPartialRope : OpRewritePattern<ConcatOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ConcatOp op, PatternRewriter &rewriter) const override {
    if (op.getInputs().size() != 2 || int64_t(op.getDim()) != tensorTypeOf(op).getRank() - 1)
      return failure();
    auto rope = op.getInputs()[0].getDefiningOp<RopeOp>();
    if (!rope)
      return failure();
    auto first = matchLastSlice(rope.getInput()), second = matchLastSlice(op.getInputs()[1]);
    if (!first || !second || first->input != second->input || first->start != 0 || first->stride != 1 ||
        second->start != first->size || (second->stride != 1 && second->size > 1) ||
        tensorTypeOf(first->input) != tensorTypeOf(op) ||
        2 * tensorTypeOf(rope.getCos()).getShape().back() != first->size)
      return rewriter.notifyMatchFailure(op, "not a rotated and an untouched part of one tensor");
    rewriter.replaceOpWithNewOp<RopeOp>(op, first->input, rope.getCos(), rope.getSin(), rope.getInterleaved());
    return success();
  }
};

} // namespace

void nd::onnx::populateRopePatterns(RewritePatternSet &patterns) {
  patterns.add<RecoverRope, RecoverPartialRope>(patterns.getContext());
}
