//===- Norm.cpp - Norms and softmax ---------------------------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Analysis/Constants.h"
#include "NodeConversion.h"
#include "nd/Dialect/ND/IR/Builders.h"

using namespace mlir;
using namespace nd;
using namespace nd::onnx;

namespace {

/// nd's norms are over the last dimension: the normalised dimensions merged into one.
struct NormOperands {
  Value input, weight, bias;
  /// The shape of statistics, normalised dimensions of size 1.
  SmallVector<int64_t> statistics;
};

FailureOr<NormOperands> normOperands(NodeConversion &node, bool hasBias) {
  if (failed(node.requireOperands(2)))
    return failure();
  RankedTensorType type = node.type(0);
  FailureOr<int64_t> axis = node.axis(node.intAttr("axis", -1), type.getRank());
  if (failed(axis))
    return failure();
  if (!isa<FloatType>(type.getElementType()))
    return node.error() << "its operand is " << type << " where floats are needed";
  ArrayRef<int64_t> normalised = type.getShape().drop_front(*axis);
  int64_t width = 1;
  for (int64_t size : normalised)
    width *= size;
  SmallVector<int64_t> merged(type.getShape().take_front(*axis));
  NormOperands result;
  result.statistics.assign(merged.begin(), merged.end());
  result.statistics.resize(type.getRank(), 1);
  merged.push_back(width);
  result.input = node.reshape(node.operand(0), merged);
  auto vector = [&](unsigned i) -> Value {
    if (TensorBuilder::broadcastShapes(node.type(i).getShape(), normalised) != SmallVector<int64_t>(normalised) ||
        node.type(i).getElementType() != type.getElementType()) {
      // A norm without a weight of its own: PyTorch's export writes a one for each element of the operand.
      std::optional<double> number = splatNumber(node.operand(i));
      if (!number || node.type(i) != type)
        return {};
      Value one = scalar(node.builder(), node.loc(), type.getElementType(), *number);
      return broadcastScalar(node.builder(), node.loc(), one, {width});
    }
    return node.reshape(node.expandTo(node.operand(i), normalised), {width});
  };
  result.weight = vector(1);
  bool biasGiven = hasBias && node.has(2);
  if (biasGiven)
    result.bias = vector(2);
  if (!result.weight || (biasGiven && !result.bias))
    return node.error() << "its weight " << node.type(1) << " or bias does not fit the normalised dimensions of "
                        << type;
  return result;
}

LogicalResult convertLayerNorm(NodeConversion &node) {
  FailureOr<NormOperands> operands = normOperands(node, /*hasBias=*/true);
  if (failed(operands))
    return failure();
  RankedTensorType merged = tensorTypeOf(operands->input);
  auto statistics = RankedTensorType::get(merged.getShape().drop_back(), node.builder().getF32Type());
  auto norm =
      LayerNormOp::create(node.builder(), node.loc(), merged, statistics, statistics, operands->input, operands->weight,
                          operands->bias, node.builder().getF64FloatAttr(node.floatAttr("epsilon", 1e-5)));
  return node.replace({node.reshape(norm.getResult(), node.type(0).getShape()),
                       node.reshape(norm.getMean(), operands->statistics),
                       node.reshape(norm.getRstd(), operands->statistics)});
}

LogicalResult convertRmsNorm(NodeConversion &node) {
  FailureOr<NormOperands> operands = normOperands(node, /*hasBias=*/false);
  if (failed(operands))
    return failure();
  RankedTensorType merged = tensorTypeOf(operands->input);
  auto statistics = RankedTensorType::get(merged.getShape().drop_back(), node.builder().getF32Type());
  auto norm = RmsNormOp::create(node.builder(), node.loc(), merged, statistics, operands->input, operands->weight,
                                node.builder().getF64FloatAttr(node.floatAttr("epsilon", 1e-5)));
  return node.replace({node.reshape(norm.getResult(), node.type(0).getShape())});
}

/// Before opset 13, softmax is over all dimensions from the axis (1) on, merged.
template <Value (*build)(TensorBuilder &, Value, int64_t), bool merges>
LogicalResult softmaxLike(NodeConversion &node) {
  if (failed(node.requireOperands(1)))
    return failure();
  RankedTensorType type = node.type(0);
  if (!isa<FloatType>(type.getElementType()))
    return node.error() << "its operand is " << type << " where floats are needed";
  FailureOr<int64_t> dim = node.axis(node.intAttr("axis", merges ? 1 : -1), type.getRank());
  if (failed(dim))
    return failure();
  if (!merges)
    return node.replace({build(node, node.operand(0), *dim)});
  int64_t width = 1;
  for (int64_t size : type.getShape().drop_front(*dim))
    width *= size;
  SmallVector<int64_t> merged(type.getShape().take_front(*dim));
  merged.push_back(width);
  return node.replace({node.reshape(build(node, node.reshape(node.operand(0), merged), *dim), type.getShape())});
}

} // namespace

Value nd::onnx::softmax(TensorBuilder &builder, Value x, int64_t dim) {
  return SoftmaxOp::create(builder.builder(), builder.loc(), x, dim);
}

Value nd::onnx::logSoftmax(TensorBuilder &builder, Value x, int64_t dim) {
  ArrayRef<int64_t> shape = tensorTypeOf(x).getShape();
  Value max = builder.reduce(ReductionKind::max, x, {dim}, /*keep=*/false);
  Value shifted = builder.create<arith::SubFOp>(x, builder.broadcastOver(max, shape, {dim}));
  Value sum = builder.reduce(ReductionKind::sum, builder.create<math::ExpOp>(shifted), {dim}, /*keep=*/false);
  Value log = builder.create<math::LogOp>(sum);
  return builder.create<arith::SubFOp>(shifted, builder.broadcastOver(log, shape, {dim}));
}

void nd::onnx::populateNorm(OpTable &table) {
  table.onOp("LayerNormalization", 17, convertLayerNorm);
  table.onOp("RMSNormalization", 23, convertRmsNorm);
  table.onOp("Softmax", 1, softmaxLike<softmax, true>);
  table.onOp("Softmax", 13, softmaxLike<softmax, false>);
  table.onOp("LogSoftmax", 1, softmaxLike<logSoftmax, true>);
  table.onOp("LogSoftmax", 13, softmaxLike<logSoftmax, false>);
}
