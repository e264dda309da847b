//===- Reduction.cpp - Reductions, running sums, sorting ------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Analysis/Positions.h"
#include "NodeConversion.h"

using namespace mlir;
using namespace nd;
using namespace nd::onnx;

namespace {

struct ReductionDims {
  SmallVector<int64_t> dims;
  bool keep;
  /// No axes are given and that means that nothing is reduced.
  bool isIdentity = false;
};

/// Axes are an operand from opset 13 (sum) or 18 (others) on, an attribute before.
FailureOr<ReductionDims> dimsOf(NodeConversion &node) {
  if (failed(node.requireOperands(1)))
    return failure();
  auto given = node.intsFrom(1, "axes");
  if (failed(given))
    return failure();
  ReductionDims result;
  result.keep = node.intAttr("keepdims", 1) != 0;
  bool none = !*given || (*given)->empty();
  result.isIdentity = none && node.intAttr("noop_with_empty_axes", 0) != 0;
  int64_t rank = node.type(0).getRank();
  auto dims = node.axes(none ? nd::sequence(rank) : **given, rank);
  if (failed(dims))
    return failure();
  result.dims = *dims;
  return result;
}

enum class Form { plain, mean, sumOfSquares, norm1, norm2, logSum, logSumExp };

template <ReductionKind kind, Form form = Form::plain> LogicalResult reduction(NodeConversion &node) {
  FailureOr<ReductionDims> dims = dimsOf(node);
  if (failed(dims))
    return failure();
  Value x = node.operand(0);
  if (dims->isIdentity)
    return node.replace({x});
  bool isFloat = isa<FloatType>(node.type(0).getElementType());
  if (form != Form::plain && !isFloat)
    return node.error() << "its operand is " << node.type(0) << " where floats are needed";
  auto reduce = [&](Value value) { return node.reduce(kind, value, dims->dims, dims->keep); };
  switch (form) {
  case Form::plain:
    return node.replace({reduce(x)});
  case Form::mean:
    return node.replace({node.mean(x, dims->dims, dims->keep)});
  case Form::sumOfSquares:
    return node.replace({reduce(node.create<arith::MulFOp>(x, x))});
  case Form::norm1:
    return node.replace({reduce(node.create<math::AbsFOp>(x))});
  case Form::norm2:
    return node.replace({node.create<math::SqrtOp>(reduce(node.create<arith::MulFOp>(x, x)))});
  case Form::logSum:
    return node.replace({node.create<math::LogOp>(reduce(x))});
  case Form::logSumExp: {
    Value max = node.reduce(ReductionKind::max, x, dims->dims, /*keep=*/true);
    Value shifted = node.create<arith::SubFOp>(x, node.expandTo(max, node.type(0).getShape()));
    Value log = node.create<math::LogOp>(reduce(node.create<math::ExpOp>(shifted)));
    return node.replace({node.create<arith::AddFOp>(log, node.reshape(max, tensorTypeOf(log).getShape()))});
  }
  }
  return failure();
}

/// A product of slices: exporters take products of sizes, which are few.
LogicalResult convertReduceProd(NodeConversion &node) {
  constexpr int64_t maxFactors = 256;
  FailureOr<ReductionDims> dims = dimsOf(node);
  if (failed(dims))
    return failure();
  Value x = node.operand(0);
  if (dims->isIdentity)
    return node.replace({x});
  bool isFloat = isa<FloatType>(node.type(0).getElementType());
  for (int64_t dim : dims->dims) {
    int64_t size = tensorTypeOf(x).getDimSize(dim);
    if (size == 0 || size > maxFactors)
      return node.error() << "multiplies " << size << " elements of dimension " << dim << "; 1 to " << maxFactors
                          << " are supported";
    Value product = node.slice(x, dim, 0, 1);
    for (int64_t i = 1; i < size; ++i) {
      Value next = node.slice(x, dim, i, 1);
      product =
          isFloat ? Value(node.create<arith::MulFOp>(product, next)) : Value(node.create<arith::MulIOp>(product, next));
    }
    x = product;
  }
  SmallVector<int64_t> shape;
  for (auto [dim, size] : llvm::enumerate(tensorTypeOf(x).getShape()))
    if (dims->keep || !llvm::is_contained(dims->dims, static_cast<int64_t>(dim)))
      shape.push_back(size);
  return node.replace({node.reshape(x, shape)});
}

template <bool isMax> LogicalResult argExtreme(NodeConversion &node) {
  if (failed(node.requireOperands(1)))
    return failure();
  RankedTensorType type = node.type(0);
  FailureOr<int64_t> dim = node.axis(node.intAttr("axis", 0), type.getRank());
  if (failed(dim))
    return failure();
  if (node.intAttr("select_last_index", 0) != 0)
    return node.error() << "select_last_index is not supported; the first index is taken";
  Value x = node.operand(0);
  if (!isMax)
    x = isa<FloatType>(type.getElementType()) ? Value(node.create<arith::NegFOp>(x))
                                              : Value(node.create<arith::SubIOp>(node.integer(x, 0), x));
  SmallVector<int64_t> shape(type.getShape());
  shape.erase(shape.begin() + *dim);
  auto resultType = RankedTensorType::get(shape, node.builder().getI64Type());
  Value index = ArgMaxOp::create(node.builder(), node.loc(), resultType, x, *dim);
  if (node.intAttr("keepdims", 1) != 0) {
    shape.insert(shape.begin() + *dim, 1);
    index = node.reshape(index, shape);
  }
  return node.replace({index});
}

/// nd sorts the last dimension, largest first; others are brought there, smallest are the largest of the negated.
LogicalResult convertTopK(NodeConversion &node) {
  if (failed(node.requireOperands(1)))
    return failure();
  FailureOr<int64_t> count = node.has(1) ? node.constantInt(1, "k") : FailureOr<int64_t>(node.intAttr("k", -1));
  RankedTensorType type = node.type(0);
  FailureOr<int64_t> dim = node.axis(node.intAttr("axis", -1), type.getRank());
  if (failed(count) || failed(dim))
    return failure();
  if (*count < 0 || *count > type.getDimSize(*dim))
    return node.error() << "takes " << *count << " of the " << type.getDimSize(*dim) << " elements of dimension "
                        << *dim;
  bool largest = node.intAttr("largest", 1) != 0;
  SmallVector<int64_t> order = nd::sequence(type.getRank());
  std::swap(order[*dim], order.back());
  Value x = node.transpose(node.operand(0), order);
  auto negate = [&](Value value) {
    return isa<FloatType>(type.getElementType()) ? Value(node.create<arith::NegFOp>(value))
                                                 : Value(node.create<arith::SubIOp>(node.integer(value, 0), value));
  };
  if (!largest)
    x = negate(x);
  SmallVector<int64_t> shape(tensorTypeOf(x).getShape());
  shape.back() = *count;
  auto top = TopKOp::create(node.builder(), node.loc(), type.clone(shape),
                            RankedTensorType::get(shape, node.builder().getI64Type()), x);
  Value values = largest ? Value(top.getValues()) : negate(top.getValues());
  return node.replace({node.transpose(values, order), node.transpose(top.getIndices(), order)});
}

/// The whole number that every element equals, also through conversions and repetitions of a constant.
std::optional<int64_t> repeatedInteger(Value value) {
  while (auto *op = value.getDefiningOp()) {
    if (!isa<arith::SIToFPOp, arith::UIToFPOp, BroadcastOp, ReshapeOp>(op))
      break;
    value = op->getOperand(0);
  }
  if (std::optional<APFloat> number = nd::floatSplatOf(value)) {
    APSInt whole(64, /*isUnsigned=*/false);
    bool isExact = false;
    number->convertToInteger(whole, APFloat::rmTowardZero, &isExact);
    return isExact ? std::optional<int64_t>(whole.getSExtValue()) : std::nullopt;
  }
  std::optional<Linear> linear = analyzeLinear(value);
  return linear && linear->isConstant() ? std::optional<int64_t>(linear->offset) : std::nullopt;
}

LogicalResult convertCumSum(NodeConversion &node) {
  FailureOr<int64_t> axis = node.constantInt(1, "axis");
  if (failed(axis))
    return failure();
  FailureOr<int64_t> dim = node.axis(*axis, node.type(0).getRank());
  if (failed(dim))
    return failure();
  bool exclusive = node.intAttr("exclusive", 0) != 0, reverse = node.intAttr("reverse", 0) != 0;
  // Running sums of one number are positions, which later passes recognise: number * (index + 1), or number * index.
  std::optional<int64_t> number = repeatedInteger(node.operand(0));
  if (number && !reverse) {
    Value position = node.iota(node.type(0).getShape(), *dim);
    if (!exclusive)
      position = node.create<arith::AddIOp>(position, node.integer(position, 1));
    position = node.create<arith::MulIOp>(position, node.integer(position, *number));
    return node.replace({node.cast(position, node.type(0).getElementType())});
  }
  return node.replace(
      {CumSumOp::create(node.builder(), node.loc(), node.type(0), node.operand(0), *dim, exclusive, reverse)});
}

} // namespace

void nd::onnx::populateReduction(OpTable &table) {
  table.onOp("ReduceSum", 1, reduction<ReductionKind::sum>);
  table.onOp("ReduceMax", 1, reduction<ReductionKind::max>);
  table.onOp("ReduceMin", 1, reduction<ReductionKind::min>);
  table.onOp("ReduceMean", 1, reduction<ReductionKind::sum, Form::mean>);
  table.onOp("ReduceProd", 1, convertReduceProd);
  table.onOp("ReduceSumSquare", 1, reduction<ReductionKind::sum, Form::sumOfSquares>);
  table.onOp("ReduceL1", 1, reduction<ReductionKind::sum, Form::norm1>);
  table.onOp("ReduceL2", 1, reduction<ReductionKind::sum, Form::norm2>);
  table.onOp("ReduceLogSum", 1, reduction<ReductionKind::sum, Form::logSum>);
  table.onOp("ReduceLogSumExp", 1, reduction<ReductionKind::sum, Form::logSumExp>);
  table.onOp("ArgMax", 1, argExtreme<true>);
  table.onOp("ArgMin", 1, argExtreme<false>);
  table.onOp("TopK", 1, convertTopK);
  table.onOp("CumSum", 11, convertCumSum);
}
