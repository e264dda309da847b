//===- Positions.cpp - Integer tensors that are linear in their index -----===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Positions.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "nd/Dialect/ND/IR/Builders.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace nd;
using namespace nd::onnx;

namespace {

/// Chains in real models are short; a longer one is not worth the stack.
constexpr unsigned maxDepth = 200;
/// A listed constant of more elements is not read.
constexpr int64_t maxListed = 1 << 20;

std::optional<Linear> analyze(Value value, unsigned depth);

/// a * x + b * y, unless it overflows.
std::optional<Linear> combine(const Linear &x, int64_t a, const Linear &y, int64_t b) {
  Linear result;
  auto term = [&](int64_t u, int64_t v, int64_t &out) {
    int64_t left, right;
    return !llvm::MulOverflow(u, a, left) && !llvm::MulOverflow(v, b, right) && !llvm::AddOverflow(left, right, out);
  };
  if (!term(x.offset, y.offset, result.offset))
    return std::nullopt;
  for (auto [u, v] : llvm::zip_equal(x.coefficients, y.coefficients))
    if (!term(u, v, result.coefficients.emplace_back()))
      return std::nullopt;
  return result;
}

/// 0, 1, 2, ... along one dimension, or any other arithmetic progression, the same in all others.
std::optional<Linear> analyzeListed(DenseElementsAttr elements, RankedTensorType type) {
  Linear result;
  result.coefficients.assign(type.getRank(), 0);
  if (!type.getElementType().isInteger(64) || type.getNumElements() == 0)
    return std::nullopt;
  if (elements.isSplat()) {
    result.offset = elements.getSplatValue<APInt>().getSExtValue();
    return result;
  }
  if (type.getNumElements() > maxListed)
    return std::nullopt;
  SmallVector<int64_t> values(elements.getValues<int64_t>());
  result.offset = values.front();
  int64_t stride = 1;
  for (int64_t dim = type.getRank() - 1; dim >= 0; --dim) {
    if (type.getDimSize(dim) > 1 && llvm::SubOverflow(values[stride], values[0], result.coefficients[dim]))
      return std::nullopt;
    stride *= type.getDimSize(dim);
  }
  SmallVector<int64_t> index(type.getRank(), 0);
  for (int64_t found : values) {
    // Wrapping arithmetic: a value that only matches by wrapping is refused by the overflow check above on use.
    uint64_t expected = result.offset;
    for (auto [i, c] : llvm::zip(index, result.coefficients))
      expected += uint64_t(i) * uint64_t(c);
    if (int64_t(expected) != found)
      return std::nullopt;
    for (int64_t dim = type.getRank() - 1; dim >= 0 && ++index[dim] == type.getDimSize(dim); --dim)
      index[dim] = 0;
  }
  return result;
}

std::optional<Linear> analyzeOperation(Operation *op, RankedTensorType type, unsigned depth) {
  int64_t rank = type.getRank();
  auto operand = [&](unsigned i) { return analyze(op->getOperand(i), depth + 1); };
  auto remapped = [&](const Linear &from, ArrayRef<int64_t> sourceOf) {
    Linear result;
    result.offset = from.offset;
    for (int64_t source : sourceOf)
      result.coefficients.push_back(source < 0 ? 0 : from.coefficients[source]);
    return result;
  };
  auto sum = [&](int64_t sign) -> std::optional<Linear> {
    auto lhs = operand(0), rhs = operand(1);
    return lhs && rhs ? combine(*lhs, 1, *rhs, sign) : std::nullopt;
  };
  return TypeSwitch<Operation *, std::optional<Linear>>(op)
      .Case([&](IotaOp iota) {
        Linear result;
        result.coefficients.assign(rank, 0);
        result.coefficients[iota.getDim()] = 1;
        return result;
      })
      .Case([&](ReshapeOp reshape) -> std::optional<Linear> {
        auto from = operand(0);
        if (!from)
          return std::nullopt;
        if (from->isConstant())
          return remapped(*from, SmallVector<int64_t>(rank, -1));
        auto map = unitReshapeMap(tensorTypeOf(reshape.getInput()).getShape(), type.getShape());
        return map ? std::optional(remapped(*from, *map)) : std::nullopt;
      })
      .Case([&](BroadcastOp broadcast) -> std::optional<Linear> {
        auto from = operand(0);
        if (!from)
          return std::nullopt;
        SmallVector<int64_t> sourceOf(rank, -1);
        for (auto [source, dim] : llvm::enumerate(broadcast.getDims()))
          sourceOf[dim] = source;
        return remapped(*from, sourceOf);
      })
      .Case([&](TransposeOp transpose) -> std::optional<Linear> {
        auto from = operand(0);
        return from ? std::optional(remapped(*from, transpose.getPermutation())) : std::nullopt;
      })
      .Case([&](SliceOp slice) -> std::optional<Linear> {
        auto from = operand(0);
        if (!from)
          return std::nullopt;
        Linear result = *from;
        for (int64_t dim = 0; dim < rank; ++dim) {
          int64_t skipped, coefficient = from->coefficients[dim];
          if (llvm::MulOverflow(coefficient, slice.getStarts()[dim], skipped) ||
              llvm::AddOverflow(result.offset, skipped, result.offset) ||
              llvm::MulOverflow(coefficient, slice.getStrides()[dim], result.coefficients[dim]))
            return std::nullopt;
        }
        return result;
      })
      .Case([&](arith::AddIOp) { return sum(1); })
      .Case([&](arith::SubIOp) { return sum(-1); })
      .Case([&](arith::MulIOp) -> std::optional<Linear> {
        auto lhs = operand(0), rhs = operand(1);
        if (!lhs || !rhs || (!lhs->isConstant() && !rhs->isConstant()))
          return std::nullopt;
        return lhs->isConstant() ? combine(*rhs, lhs->offset, *lhs, 0) : combine(*lhs, rhs->offset, *rhs, 0);
      })
      .Default([](Operation *) { return std::nullopt; });
}

std::optional<Linear> analyze(Value value, unsigned depth) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  Operation *op = value.getDefiningOp();
  if (!op || !type || depth > maxDepth)
    return std::nullopt;
  if (value = lookThroughCasts(value); value.getDefiningOp() != op)
    return analyze(value, depth + 1);
  DenseElementsAttr elements;
  std::optional<Linear> result =
      matchPattern(op, m_Constant(&elements)) ? analyzeListed(elements, type) : analyzeOperation(op, type, depth);
  if (result)
    for (auto [coefficient, size] : llvm::zip(result->coefficients, type.getShape()))
      if (size == 1)
        coefficient = 0;
  return result;
}

bool isNonNegative(Value value, unsigned depth) {
  if (isa<BlockArgument>(value))
    return true;
  if (depth > maxDepth)
    return false;
  Operation *op = value.getDefiningOp();
  DenseElementsAttr elements;
  if (matchPattern(op, m_Constant(&elements)))
    return elements.getNumElements() <= maxListed &&
           llvm::none_of(elements.getValues<APInt>(), [](const APInt &element) { return element.isNegative(); });
  if (isa<IotaOp>(op) || isa<arith::ExtUIOp>(op))
    return true;
  auto operands = [&](ValueRange values) {
    return llvm::all_of(values, [&](Value operand) { return ::isNonNegative(operand, depth + 1); });
  };
  if (isa<ReshapeOp, BroadcastOp, TransposeOp, SliceOp, ConcatOp, arith::MinSIOp, arith::AddIOp, arith::MulIOp>(op))
    return operands(op->getOperands());
  if (auto take = dyn_cast<TakeOp>(op))
    return operands(take.getTable());
  if (auto select = dyn_cast<arith::SelectOp>(op))
    return operands({select.getTrueValue(), select.getFalseValue()});
  if (isa<arith::MaxSIOp>(op))
    return llvm::any_of(op->getOperands(), [&](Value operand) { return ::isNonNegative(operand, depth + 1); });
  return false;
}

} // namespace

std::optional<int64_t> Linear::countedDim() const {
  std::optional<int64_t> counted;
  if (offset != 0)
    return std::nullopt;
  for (auto [dim, coefficient] : llvm::enumerate(coefficients)) {
    if (coefficient == 0)
      continue;
    if (coefficient != 1 || counted)
      return std::nullopt;
    counted = dim;
  }
  return counted;
}

std::optional<SmallVector<int64_t>> nd::onnx::unitReshapeMap(ArrayRef<int64_t> from, ArrayRef<int64_t> to) {
  SmallVector<int64_t> map;
  size_t next = 0;
  auto skipOnes = [&] {
    while (next < from.size() && from[next] == 1)
      ++next;
  };
  for (int64_t size : to) {
    if (size == 1) {
      map.push_back(-1);
      continue;
    }
    skipOnes();
    if (next == from.size() || from[next] != size)
      return std::nullopt;
    map.push_back(next++);
  }
  skipOnes();
  return next == from.size() ? std::optional(std::move(map)) : std::nullopt;
}

Value nd::onnx::lookThroughCasts(Value value) {
  // Positions stay far below 2^24, but only an exact round trip is taken: integer -> float -> integer.
  if (auto toInt = value.getDefiningOp<arith::FPToSIOp>())
    if (auto toFloat = toInt.getIn().getDefiningOp<arith::SIToFPOp>())
      if (toFloat.getIn().getType() == value.getType())
        return toFloat.getIn();
  return value;
}

std::optional<Linear> nd::onnx::analyzeLinear(Value value) { return analyze(value, 0); }

bool nd::onnx::isNonNegative(Value value) { return ::isNonNegative(value, 0); }
