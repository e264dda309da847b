//===- MaskPredicate.cpp - Masks as predicates over positions -------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Invariant: `dims[i]` says which of the score's dimensions (0 batch, 1 head, 2 query, 3 key) dimension i of a value
// is; -1 for dimensions of size 1 that carry nothing.
//
//===----------------------------------------------------------------------===//

#include "MaskPredicate.h"
#include "Constants.h"
#include "Positions.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "nd/Dialect/ND/IR/Builders.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace nd;
using namespace nd::onnx;

namespace {

constexpr unsigned maxDepth = 64;
/// A mask that is listed in the model is read up to this size.
constexpr int64_t maxListed = int64_t(1) << 24;

using Dims = SmallVector<int64_t>;
enum : int64_t { kBatch = 0, kQuery = 2, kKey = 3 };

/// Moves (value, dims) from the result to the operand of an operation that only moves or repeats elements.
bool stepThroughMove(Value &value, Dims &dims) {
  Operation *op = value.getDefiningOp();
  Dims from;
  if (auto broadcast = dyn_cast_or_null<BroadcastOp>(op)) {
    for (int64_t dim : broadcast.getDims())
      from.push_back(dims[dim]);
  } else if (auto transpose = dyn_cast_or_null<TransposeOp>(op)) {
    from.resize(dims.size());
    for (auto [to, source] : llvm::enumerate(transpose.getPermutation()))
      from[source] = dims[to];
  } else if (auto reshape = dyn_cast_or_null<ReshapeOp>(op)) {
    auto map = unitReshapeMap(reshape.getInput().getType().getShape(), tensorTypeOf(value).getShape());
    if (!map)
      return false;
    from.assign(reshape.getInput().getType().getRank(), -1);
    for (auto [to, source] : llvm::enumerate(*map))
      if (source >= 0)
        from[source] = dims[to];
  } else {
    return false;
  }
  value = op->getOperand(0);
  dims = from;
  return true;
}

/// One side of a comparison: q * query + k * key + offset, where query and key are indices or, with a base, the base's
/// values at them.
struct Side {
  int64_t query = 0, key = 0, offset = 0;
  Value base;
};

class MaskAnalysis {
public:
  MaskAnalysis(int64_t queries, int64_t keys) : queries(queries), keys(keys) {}

  MaskPredicate predicate;

  bool visit(Value value, Dims dims, unsigned depth = 0) {
    if (depth > maxDepth)
      return false;
    if (isa<FloatType>(tensorTypeOf(value).getElementType()))
      return visitFloat(value, dims, depth);
    bool all = true;
    DenseElementsAttr elements;
    if (matchPattern(value, m_Constant(&elements)))
      return elements.isSplat() ? elements.getSplatValue<bool>() : visitListed(elements, dims);
    Operation *op = value.getDefiningOp();
    if (isa_and_nonnull<arith::AndIOp>(op)) {
      for (Value operand : op->getOperands())
        all = all && visit(operand, dims, depth + 1);
      return all;
    }
    // What torch.tril makes of booleans.
    if (auto select = dyn_cast_or_null<arith::SelectOp>(op);
        select && matchPattern(select.getFalseValue(), m_Constant(&elements)) && elements.isSplat() &&
        !elements.getSplatValue<bool>())
      return visit(select.getCondition(), dims, depth + 1) && visit(select.getTrueValue(), dims, depth + 1);
    if (auto compare = dyn_cast_or_null<arith::CmpIOp>(op); compare && visitComparison(compare, dims))
      return true;
    if (auto negated = matchNot(value); negated && visitNegated(negated, dims))
      return true;
    if (visitPadding(value, dims))
      return true;
    Value moved = value;
    Dims movedDims = dims;
    return stepThroughMove(moved, movedDims) && visit(moved, movedDims, depth + 1);
  }

private:
  /// 0 where visible, very negative where not. A sum of such masks is their conjunction.
  bool visitFloat(Value value, const Dims &dims, unsigned depth) {
    Operation *op = value.getDefiningOp();
    DenseElementsAttr elements;
    if (matchPattern(value, m_Constant(&elements)))
      return elements.isSplat() ? splatNumber(value) == 0.0 : visitListed(elements, dims);
    if (isa_and_nonnull<arith::AddFOp, arith::MinimumFOp>(op))
      return visit(op->getOperand(0), dims, depth + 1) && visit(op->getOperand(1), dims, depth + 1);
    if (auto select = dyn_cast_or_null<arith::SelectOp>(op)) {
      std::optional<double> whenTrue = splatNumber(select.getTrueValue()),
                            whenFalse = splatNumber(select.getFalseValue());
      if (whenTrue == 0.0 && whenFalse && isMinusInfinity(*whenFalse))
        return visit(select.getCondition(), dims, depth + 1);
      if (whenTrue && isMinusInfinity(*whenTrue)) {
        bool restIsMask = whenFalse == 0.0 || visit(select.getFalseValue(), dims, depth + 1);
        return restIsMask && visitNegated(select.getCondition(), dims);
      }
      if (whenFalse && isMinusInfinity(*whenFalse))
        return visit(select.getTrueValue(), dims, depth + 1) && visit(select.getCondition(), dims, depth + 1);
      return false;
    }
    Value moved = value;
    Dims movedDims = dims;
    return stepThroughMove(moved, movedDims) && visit(moved, movedDims, depth + 1);
  }

  static Value matchNot(Value value) {
    auto flip = value.getDefiningOp<arith::XOrIOp>();
    for (unsigned i = 0; flip && i < 2; ++i) {
      DenseElementsAttr ones;
      if (matchPattern(flip->getOperand(i), m_Constant(&ones)) && ones.isSplat() &&
          ones.getSplatValue<APInt>().isAllOnes())
        return flip->getOperand(1 - i);
    }
    return {};
  }

  /// The negation of `value` is a conjunct.
  bool visitNegated(Value value, Dims dims) {
    while (true) {
      if (Value inner = matchNot(value))
        return visit(inner, dims, maxDepth / 2);
      if (auto compare = value.getDefiningOp<arith::CmpIOp>())
        return addComparison(arith::invertPredicate(compare.getPredicate()), compare.getLhs(), compare.getRhs(), dims);
      if (!stepThroughMove(value, dims))
        return false;
    }
  }

  bool visitComparison(arith::CmpIOp compare, const Dims &dims) {
    return addComparison(compare.getPredicate(), compare.getLhs(), compare.getRhs(), dims);
  }

  std::optional<Side> sideOf(Value value, Dims dims) {
    if (std::optional<Linear> linear = analyzeLinear(value)) {
      Side side;
      side.offset = linear->offset;
      for (auto [dim, coefficient] : llvm::zip_equal(dims, linear->coefficients)) {
        if (coefficient == 0)
          continue;
        if (dim == kQuery)
          side.query += coefficient;
        else if (dim == kKey)
          side.key += coefficient;
        else
          return std::nullopt;
      }
      return side;
    }
    while (stepThroughMove(value, dims)) {
    }
    // [B, S] with S the queries' or the keys' dimension.
    if (dims.size() != 2 || dims[0] == kQuery || dims[0] == kKey || (dims[0] != kBatch && dims[0] != -1) ||
        (dims[1] != kQuery && dims[1] != kKey) || !tensorTypeOf(value).getElementType().isInteger(64))
      return std::nullopt;
    Side side;
    (dims[1] == kQuery ? side.query : side.key) = 1;
    side.base = value;
    return side;
  }

  bool addComparison(arith::CmpIPredicate kind, Value lhs, Value rhs, const Dims &dims) {
    using P = arith::CmpIPredicate;
    if (!tensorTypeOf(lhs).getElementType().isInteger(64))
      return false;
    std::optional<Side> a = sideOf(lhs, dims), b = sideOf(rhs, dims);
    // The same window is also written as a limit on a side that is a base plus a number.
    if (!a)
      a = shifted(lhs, dims);
    if (!b)
      b = shifted(rhs, dims);
    if (!a || !b)
      return false;
    if (kind == P::eq)
      return addDocuments(*a, *b);
    // All as d >= 0 with d = query * q + key * k + offset.
    if (kind == P::sle || kind == P::slt)
      std::swap(*a, *b);
    else if (kind != P::sge && kind != P::sgt)
      return false;
    Side d;
    d.query = a->query - b->query;
    d.key = a->key - b->key;
    if (llvm::SubOverflow(a->offset, b->offset, d.offset))
      return false;
    if (kind == P::slt || kind == P::sgt)
      --d.offset;
    bool onBase = a->base || b->base;
    if (onBase && a->base != b->base)
      return false;
    if (!onBase && alwaysHolds(d))
      return true;
    Value base = onBase ? a->base : Value();
    if (!agree(base))
      return false;
    if (d.query == 1 && d.key == -1 && d.offset == 0) {
      predicate.causal = true;
      return true;
    }
    if (d.query == -1 && d.key == 1 && d.offset >= 0 && d.offset < std::numeric_limits<int64_t>::max()) {
      int64_t window = d.offset + 1;
      predicate.window = predicate.window ? std::min(predicate.window, window) : window;
      return true;
    }
    return false;
  }

  /// base + number
  std::optional<Side> shifted(Value value, Dims dims) {
    while (stepThroughMove(value, dims)) {
    }
    Operation *op = value.getDefiningOp();
    bool subtracts = isa_and_nonnull<arith::SubIOp>(op);
    if (!subtracts && !isa_and_nonnull<arith::AddIOp>(op))
      return std::nullopt;
    for (unsigned i = 0; i < (subtracts ? 1u : 2u); ++i) {
      std::optional<Linear> number = analyzeLinear(op->getOperand(1 - i));
      std::optional<Side> side = sideOf(op->getOperand(i), dims);
      if (!number || !number->isConstant() || !side)
        continue;
      int64_t offset = number->offset;
      if (!(subtracts ? llvm::SubOverflow(side->offset, offset, side->offset)
                      : llvm::AddOverflow(side->offset, offset, side->offset)))
        return side;
    }
    return std::nullopt;
  }

  /// All comparisons of positions must compare the same positions.
  bool agree(Value base) {
    bool isFirst = !predicate.causal && !predicate.window;
    if (isFirst)
      predicate.positions = base;
    return predicate.positions == base;
  }

  bool alwaysHolds(const Side &d) const {
    // The minimum over 0 <= q < queries, 0 <= k < keys; coefficients are small in every mask that is one.
    if (std::abs(d.query) > (1 << 20) || std::abs(d.key) > (1 << 20) || queries > (int64_t(1) << 40) ||
        keys > (int64_t(1) << 40))
      return false;
    int64_t low = std::min<int64_t>(0, d.query) * (queries - 1) + std::min<int64_t>(0, d.key) * (keys - 1);
    return d.offset >= -low;
  }

  bool addDocuments(const Side &a, const Side &b) {
    bool queryAndKey = (a.query == 1 && a.key == 0 && b.query == 0 && b.key == 1) ||
                       (a.query == 0 && a.key == 1 && b.query == 1 && b.key == 0);
    if (!queryAndKey || !a.base || a.base != b.base || a.offset != b.offset)
      return false;
    if (predicate.documents && predicate.documents != a.base)
      return false;
    predicate.documents = a.base;
    return true;
  }

  /// A boolean that does not depend on the query or the head.
  bool visitPadding(Value value, const Dims &dims) {
    Value source = value;
    Dims sourceDims = dims;
    while (stepThroughMove(source, sourceDims)) {
    }
    bool hasKey = false;
    for (int64_t dim : sourceDims) {
      if (dim != kBatch && dim != kKey && dim != -1)
        return false;
      hasKey |= dim == kKey;
    }
    for (auto [dim, size] : llvm::zip_equal(sourceDims, tensorTypeOf(source).getShape()))
      if (dim == -1 && size != 1)
        return false;
    // Constants and comparisons of positions are no padding; a keyless condition would be of the batch.
    if (!hasKey || isa_and_nonnull<arith::AndIOp>(source.getDefiningOp()) || matchPattern(source, m_Constant()))
      return false;
    predicate.paddings.push_back({source, SmallVector<int64_t>(sourceDims)});
    return true;
  }

  /// A mask whose elements are listed: causal or a window, by looking at all of them.
  bool visitListed(DenseElementsAttr elements, const Dims &dims) {
    auto type = cast<RankedTensorType>(elements.getType());
    if (type.getNumElements() > maxListed)
      return false;
    int64_t queryDim = -1, keyDim = -1;
    for (auto [i, dim] : llvm::enumerate(dims)) {
      if (dim == kQuery)
        queryDim = i;
      else if (dim == kKey)
        keyDim = i;
    }
    if (queryDim < 0 || keyDim < 0 || type.getDimSize(queryDim) != queries || type.getDimSize(keyDim) != keys ||
        queries < 2)
      return false;
    std::optional<SmallVector<bool>> visible = booleans(elements);
    if (!visible)
      return false;
    auto atFirst = [&](int64_t q, int64_t k) {
      int64_t flat = 0;
      for (int64_t i = 0; i < type.getRank(); ++i)
        flat = flat * type.getDimSize(i) + (i == queryDim ? q : i == keyDim ? k : 0);
      return bool((*visible)[flat]);
    };
    // Read causality and window off the first column and row, then check every element.
    bool causal = keys > 1 && !atFirst(0, keys - 1);
    int64_t window = 0;
    for (int64_t q = queries - 1; q > 0 && !atFirst(q, 0); --q)
      window = q;
    SmallVector<int64_t> index(type.getRank(), 0);
    for (bool found : *visible) {
      int64_t q = index[queryDim], k = index[keyDim];
      bool expected = (!causal || k <= q) && (!window || q - k < window);
      if (found != expected)
        return false;
      for (int64_t i = type.getRank() - 1; i >= 0 && ++index[i] == type.getDimSize(i); --i)
        index[i] = 0;
    }
    if (!causal && !window)
      return true;
    if (!agree({}))
      return false;
    predicate.causal |= causal;
    if (window)
      predicate.window = predicate.window ? std::min(predicate.window, window) : window;
    return true;
  }

  static std::optional<SmallVector<bool>> booleans(DenseElementsAttr elements) {
    SmallVector<bool> result;
    result.reserve(elements.getNumElements());
    if (elements.getElementType().isInteger(1)) {
      result.assign(elements.getValues<bool>().begin(), elements.getValues<bool>().end());
      return result;
    }
    if (!isa<FloatType>(elements.getElementType()))
      return std::nullopt;
    for (const APFloat &value : elements.getValues<APFloat>()) {
      bool isVisible = value.isZero();
      if (!isVisible && !isMinusInfinity(value.convertToDouble()))
        return std::nullopt;
      result.push_back(isVisible);
    }
    return result;
  }

  int64_t queries, keys;
};

} // namespace

bool nd::onnx::isMinusInfinity(double number) { return number <= -1e9; }

std::optional<MaskPredicate> nd::onnx::analyzeMask(Value mask, int64_t queries, int64_t keys) {
  MaskAnalysis analysis(queries, keys);
  if (!analysis.visit(mask, {0, 1, 2, 3}))
    return std::nullopt;
  return analysis.predicate;
}
