//===- ConstantEvaluator.cpp - Values known at import ---------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "ConstantEvaluator.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "nd/Dialect/ND/IR/Builders.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>

using namespace mlir;
using namespace nd;
using namespace nd::onnx;

namespace {

/// Visits every index of `shape` in row-major order.
template <typename Visit> void eachIndex(ArrayRef<int64_t> shape, Visit visit) {
  SmallVector<int64_t> index(shape.size(), 0);
  if (llvm::is_contained(shape, 0))
    return;
  while (true) {
    visit(ArrayRef<int64_t>(index));
    int64_t dim = static_cast<int64_t>(shape.size()) - 1;
    while (dim >= 0 && ++index[dim] == shape[dim])
      index[dim--] = 0;
    if (dim < 0)
      return;
  }
}

int64_t flatten(ArrayRef<int64_t> index, ArrayRef<int64_t> shape) {
  int64_t flat = 0;
  for (auto [i, size] : llvm::zip(index, shape))
    flat = flat * size + i;
  return flat;
}

/// The result of `shape` whose element at an index is `source`'s element at `map(index)`, a flat position.
template <typename Map> ConstantTensor moved(const ConstantTensor &source, ArrayRef<int64_t> shape, Map map) {
  ConstantTensor result;
  result.shape.assign(shape.begin(), shape.end());
  result.isFloat = source.isFloat;
  eachIndex(shape, [&](ArrayRef<int64_t> index) {
    int64_t from = map(index);
    if (source.isFloat)
      result.floats.push_back(source.floats[from]);
    else
      result.ints.push_back(source.ints[from]);
  });
  return result;
}

std::optional<int64_t> foldInt(Operation *op, ArrayRef<int64_t> v) {
  // Wraps as the operation does.
  auto wrap = [](uint64_t value) { return static_cast<int64_t>(value); };
  return TypeSwitch<Operation *, std::optional<int64_t>>(op)
      .Case([&](arith::AddIOp) { return wrap(uint64_t(v[0]) + uint64_t(v[1])); })
      .Case([&](arith::SubIOp) { return wrap(uint64_t(v[0]) - uint64_t(v[1])); })
      .Case([&](arith::MulIOp) { return wrap(uint64_t(v[0]) * uint64_t(v[1])); })
      .Case([&](arith::DivSIOp) -> std::optional<int64_t> {
        if (v[1] == 0 || (v[1] == -1 && v[0] == std::numeric_limits<int64_t>::min()))
          return std::nullopt;
        return v[0] / v[1];
      })
      .Case([&](arith::RemSIOp) -> std::optional<int64_t> {
        if (v[1] == 0 || v[1] == -1)
          return v[1] == 0 ? std::nullopt : std::optional<int64_t>(0);
        return v[0] % v[1];
      })
      .Case([&](arith::MinSIOp) { return std::min(v[0], v[1]); })
      .Case([&](arith::MaxSIOp) { return std::max(v[0], v[1]); })
      .Case([&](arith::AndIOp) { return v[0] & v[1]; })
      .Case([&](arith::OrIOp) { return v[0] | v[1]; })
      .Case([&](arith::XOrIOp) { return v[0] ^ v[1]; })
      .Case([&](arith::ExtUIOp) { return v[0]; })
      .Case([&](arith::CmpIOp cmp) -> std::optional<int64_t> {
        switch (cmp.getPredicate()) {
        case arith::CmpIPredicate::eq:
          return v[0] == v[1];
        case arith::CmpIPredicate::ne:
          return v[0] != v[1];
        case arith::CmpIPredicate::slt:
          return v[0] < v[1];
        case arith::CmpIPredicate::sle:
          return v[0] <= v[1];
        case arith::CmpIPredicate::sgt:
          return v[0] > v[1];
        case arith::CmpIPredicate::sge:
          return v[0] >= v[1];
        default:
          return std::nullopt;
        }
      })
      .Default([](Operation *) { return std::nullopt; });
}

std::optional<double> foldFloat(Operation *op, ArrayRef<double> v) {
  return TypeSwitch<Operation *, std::optional<double>>(op)
      .Case([&](arith::AddFOp) { return v[0] + v[1]; })
      .Case([&](arith::SubFOp) { return v[0] - v[1]; })
      .Case([&](arith::MulFOp) { return v[0] * v[1]; })
      .Case([&](arith::DivFOp) { return v[0] / v[1]; })
      .Case([&](arith::NegFOp) { return -v[0]; })
      .Case([&](math::FloorOp) { return std::floor(v[0]); })
      .Case([&](math::CeilOp) { return std::ceil(v[0]); })
      .Case([&](math::SqrtOp) { return std::sqrt(v[0]); })
      .Case<arith::ExtFOp, arith::TruncFOp>([&](Operation *) { return v[0]; })
      .Default([](Operation *) { return std::nullopt; });
}

std::optional<int64_t> compareFloats(arith::CmpFOp cmp, double a, double b) {
  switch (cmp.getPredicate()) {
  case arith::CmpFPredicate::OEQ:
    return a == b;
  case arith::CmpFPredicate::UNE:
    return a != b;
  case arith::CmpFPredicate::OLT:
    return a < b;
  case arith::CmpFPredicate::OLE:
    return a <= b;
  case arith::CmpFPredicate::OGT:
    return a > b;
  case arith::CmpFPredicate::OGE:
    return a >= b;
  default:
    return std::nullopt;
  }
}

std::optional<ConstantTensor> fromAttribute(DenseElementsAttr elements, ArrayRef<int64_t> shape) {
  ConstantTensor result;
  result.shape.assign(shape.begin(), shape.end());
  if (isa<FloatType>(elements.getElementType())) {
    result.isFloat = true;
    for (const APFloat &value : elements.getValues<APFloat>())
      result.floats.push_back(value.convertToDouble());
  } else if (elements.getElementType().isInteger(1)) {
    for (bool value : elements.getValues<bool>())
      result.ints.push_back(value);
  } else if (elements.getElementType().isInteger()) {
    for (const APInt &value : elements.getValues<APInt>())
      result.ints.push_back(value.getSExtValue());
  } else {
    return std::nullopt;
  }
  return result;
}

/// Arithmetic, element by element, all operands of one shape.
std::optional<ConstantTensor> elementwise(Operation *op, ArrayRef<ConstantTensor> operands, RankedTensorType type) {
  ConstantTensor result;
  result.shape.assign(type.getShape().begin(), type.getShape().end());
  result.isFloat = isa<FloatType>(type.getElementType());
  bool single = type.getElementType().isF32();
  for (int64_t i = 0, size = type.getNumElements(); i < size; ++i) {
    if (isa<arith::SelectOp>(op)) {
      const ConstantTensor &chosen = operands[operands.front().ints[i] ? 1 : 2];
      if (result.isFloat)
        result.floats.push_back(chosen.floats[i]);
      else
        result.ints.push_back(chosen.ints[i]);
      continue;
    }
    if (auto cmp = dyn_cast<arith::CmpFOp>(op)) {
      std::optional<int64_t> value = compareFloats(cmp, operands[0].floats[i], operands[1].floats[i]);
      if (!value)
        return std::nullopt;
      result.ints.push_back(*value);
      continue;
    }
    if (!result.isFloat && operands.front().isFloat) {
      double value = operands.front().floats[i];
      if (!isa<arith::FPToSIOp>(op) || !(std::fabs(value) < 9e18))
        return std::nullopt;
      result.ints.push_back(static_cast<int64_t>(value));
      continue;
    }
    if (result.isFloat && !operands.front().isFloat) {
      if (!isa<arith::SIToFPOp, arith::UIToFPOp>(op))
        return std::nullopt;
      double value = static_cast<double>(operands.front().ints[i]);
      result.floats.push_back(single ? static_cast<float>(value) : value);
      continue;
    }
    if (result.isFloat) {
      SmallVector<double> values;
      for (const ConstantTensor &operand : operands)
        values.push_back(operand.floats[i]);
      std::optional<double> value = foldFloat(op, values);
      if (!value)
        return std::nullopt;
      result.floats.push_back(single ? static_cast<float>(*value) : *value);
    } else {
      SmallVector<int64_t> values;
      for (const ConstantTensor &operand : operands)
        values.push_back(operand.ints[i]);
      std::optional<int64_t> value = foldInt(op, values);
      if (!value)
        return std::nullopt;
      result.ints.push_back(*value);
    }
  }
  return result;
}

ConstantTensor concatenated(ArrayRef<ConstantTensor> parts, int64_t dim, RankedTensorType type) {
  ConstantTensor result;
  result.shape.assign(type.getShape().begin(), type.getShape().end());
  result.isFloat = parts.front().isFloat;
  eachIndex(type.getShape(), [&](ArrayRef<int64_t> index) {
    SmallVector<int64_t> local(index);
    size_t part = 0;
    while (local[dim] >= parts[part].shape[dim])
      local[dim] -= parts[part++].shape[dim];
    int64_t flat = flatten(local, parts[part].shape);
    if (result.isFloat)
      result.floats.push_back(parts[part].floats[flat]);
    else
      result.ints.push_back(parts[part].ints[flat]);
  });
  return result;
}

std::optional<ConstantTensor> reduced(ReduceOp op, const ConstantTensor &input) {
  if (input.isFloat || op.getKind() != ReductionKind::sum)
    return std::nullopt;
  ConstantTensor result;
  ArrayRef<int64_t> shape = tensorTypeOf(op).getShape();
  result.shape.assign(shape.begin(), shape.end());
  result.ints.assign(tensorTypeOf(op).getNumElements(), 0);
  int64_t flat = 0;
  eachIndex(input.shape, [&](ArrayRef<int64_t> index) {
    SmallVector<int64_t> kept;
    for (auto [dim, i] : llvm::enumerate(index))
      if (!llvm::is_contained(op.getDims(), int64_t(dim)))
        kept.push_back(i);
    int64_t &sum = result.ints[flatten(kept, shape)];
    sum = static_cast<int64_t>(uint64_t(sum) + uint64_t(input.ints[flat++]));
  });
  return result;
}

std::optional<ConstantTensor> taken(TakeOp op, const ConstantTensor &table, const ConstantTensor &indices) {
  int64_t rows = table.shape.empty() ? 0 : table.shape.front();
  for (int64_t index : indices.ints)
    if (index < 0 || index >= rows)
      return std::nullopt;
  size_t rank = indices.shape.size();
  return moved(table, tensorTypeOf(op).getShape(), [&](ArrayRef<int64_t> index) {
    SmallVector<int64_t> from = {indices.ints[flatten(index.take_front(rank), indices.shape)]};
    llvm::append_range(from, index.drop_front(rank));
    return flatten(from, table.shape);
  });
}

} // namespace

std::optional<ConstantTensor> ConstantEvaluator::evaluate(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (!type || type.getNumElements() > maxElements)
    return std::nullopt;
  if (auto found = known.find(value); found != known.end())
    return found->second;
  if (depth >= maxDepth)
    return std::nullopt;
  ++depth;
  std::optional<ConstantTensor> result = compute(value);
  --depth;
  known[value] = result;
  return result;
}

std::optional<ConstantTensor> ConstantEvaluator::compute(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return std::nullopt;
  RankedTensorType type = tensorTypeOf(value);
  DenseElementsAttr elements;
  if (matchPattern(op, m_Constant(&elements)))
    return fromAttribute(elements, type.getShape());
  if (auto iota = dyn_cast<IotaOp>(op)) {
    ConstantTensor result;
    result.shape.assign(type.getShape().begin(), type.getShape().end());
    eachIndex(type.getShape(), [&](ArrayRef<int64_t> index) { result.ints.push_back(index[iota.getDim()]); });
    return result;
  }
  bool isKnown = isa<ReshapeOp, BroadcastOp, TransposeOp, SliceOp, ConcatOp, ReduceOp, TakeOp>(op) ||
                 isa<arith::ArithDialect, math::MathDialect>(op->getDialect());
  if (!isKnown || op->getNumResults() != 1)
    return std::nullopt;
  SmallVector<ConstantTensor> operands;
  for (Value operand : op->getOperands()) {
    std::optional<ConstantTensor> constant = evaluate(operand);
    if (!constant)
      return std::nullopt;
    operands.push_back(std::move(*constant));
  }
  if (operands.empty())
    return std::nullopt;
  const ConstantTensor &first = operands.front();
  return TypeSwitch<Operation *, std::optional<ConstantTensor>>(op)
      .Case([&](ReshapeOp) {
        ConstantTensor result = first;
        result.shape.assign(type.getShape().begin(), type.getShape().end());
        return result;
      })
      .Case([&](BroadcastOp broadcast) {
        return moved(first, type.getShape(), [&](ArrayRef<int64_t> index) {
          SmallVector<int64_t> from;
          for (int64_t dim : broadcast.getDims())
            from.push_back(index[dim]);
          return flatten(from, first.shape);
        });
      })
      .Case([&](TransposeOp transpose) {
        return moved(first, type.getShape(), [&](ArrayRef<int64_t> index) {
          SmallVector<int64_t> from(index.size());
          for (auto [dim, source] : llvm::enumerate(transpose.getPermutation()))
            from[source] = index[dim];
          return flatten(from, first.shape);
        });
      })
      .Case([&](SliceOp slice) {
        return moved(first, type.getShape(), [&](ArrayRef<int64_t> index) {
          SmallVector<int64_t> from;
          for (auto [i, start, stride] : llvm::zip(index, slice.getStarts(), slice.getStrides()))
            from.push_back(start + i * stride);
          return flatten(from, first.shape);
        });
      })
      .Case([&](ConcatOp concat) { return concatenated(operands, concat.getDim(), type); })
      .Case([&](ReduceOp reduce) { return reduced(reduce, first); })
      .Case([&](TakeOp take) { return taken(take, operands[0], operands[1]); })
      .Default([&](Operation *other) { return elementwise(other, operands, type); });
}
