//===- Elementwise.cpp - Arithmetic and activations -----------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "ModelFile.h"
#include "NodeConversion.h"

using namespace mlir;
using namespace nd;
using namespace nd::onnx;

namespace {

bool isFloat(Value value) { return isa<FloatType>(tensorTypeOf(value).getElementType()); }

/// All operands at their common shape.
FailureOr<SmallVector<Value>> broadcastOperands(NodeConversion &node, unsigned first, unsigned count) {
  if (failed(node.requireOperands(first + count)))
    return failure();
  SmallVector<int64_t> shape;
  Type element = node.type(first).getElementType();
  for (unsigned i = first; i < first + count; ++i) {
    auto wider = TensorBuilder::broadcastShapes(shape, node.type(i).getShape());
    if (!wider)
      return node.error() << "operands of types " << node.type(first) << " and " << node.type(i) << " do not broadcast";
    if (node.type(i).getElementType() != element)
      return node.error() << "operands have the element types " << element << " and " << node.type(i).getElementType();
    shape = *wider;
  }
  SmallVector<Value> values;
  for (unsigned i = first; i < first + count; ++i)
    values.push_back(node.expandTo(node.operand(i), shape));
  return values;
}

template <typename FloatOp, typename IntOp> LogicalResult binary(NodeConversion &node) {
  auto operands = broadcastOperands(node, 0, 2);
  if (failed(operands))
    return failure();
  Value lhs = (*operands)[0], rhs = (*operands)[1];
  return node.replace({isFloat(lhs) ? Value(node.create<FloatOp>(lhs, rhs)) : Value(node.create<IntOp>(lhs, rhs))});
}

/// A chain over any number of operands.
template <typename FloatOp, typename IntOp> LogicalResult variadic(NodeConversion &node) {
  auto operands = broadcastOperands(node, 0, std::max(1u, node.numOperands()));
  if (failed(operands))
    return failure();
  Value result = operands->front();
  for (Value next : llvm::drop_begin(*operands))
    result = isFloat(result) ? Value(node.create<FloatOp>(result, next)) : Value(node.create<IntOp>(result, next));
  return node.replace({result});
}

LogicalResult variadicMean(NodeConversion &node) {
  auto operands = broadcastOperands(node, 0, std::max(1u, node.numOperands()));
  if (failed(operands))
    return failure();
  Value sum = operands->front();
  for (Value next : llvm::drop_begin(*operands))
    sum = node.create<arith::AddFOp>(sum, next);
  return node.replace({node.create<arith::DivFOp>(sum, node.number(sum, operands->size()))});
}

/// A function of one float operand, given as a builder of values.
template <Value (*build)(NodeConversion &, Value)> LogicalResult unary(NodeConversion &node) {
  if (failed(node.requireOperands(1)))
    return failure();
  if (!isFloat(node.operand(0)))
    return node.error() << "its operand is " << node.type(0) << " where floats are needed";
  return node.replace({build(node, node.operand(0))});
}

template <typename Op> Value simple(NodeConversion &node, Value x) { return node.create<Op>(x); }

LogicalResult convertNeg(NodeConversion &node) {
  if (failed(node.requireOperands(1)))
    return failure();
  Value x = node.operand(0);
  return node.replace(
      {isFloat(x) ? Value(node.create<arith::NegFOp>(x)) : Value(node.create<arith::SubIOp>(node.integer(x, 0), x))});
}

LogicalResult convertAbs(NodeConversion &node) {
  if (failed(node.requireOperands(1)))
    return failure();
  Value x = node.operand(0);
  return node.replace({isFloat(x) ? Value(node.create<math::AbsFOp>(x)) : Value(node.create<math::AbsIOp>(x))});
}

LogicalResult convertSign(NodeConversion &node) {
  if (failed(node.requireOperands(1)))
    return failure();
  Value x = node.operand(0);
  auto compare = [&](bool greater) {
    return isFloat(x)
               ? node.compare(greater ? arith::CmpFPredicate::OGT : arith::CmpFPredicate::OLT, x, node.number(x, 0))
               : node.compare(greater ? arith::CmpIPredicate::sgt : arith::CmpIPredicate::slt, x, node.integer(x, 0));
  };
  Type element = tensorTypeOf(x).getElementType();
  Value above = node.cast(compare(true), element), below = node.cast(compare(false), element);
  return node.replace(
      {isFloat(x) ? Value(node.create<arith::SubFOp>(above, below)) : Value(node.create<arith::SubIOp>(above, below))});
}

/// Powers that have a cheaper form take it: x^2 is x * x.
LogicalResult convertPow(NodeConversion &node) {
  if (failed(node.requireOperands(2)))
    return failure();
  Value base = node.operand(0);
  auto shape = TensorBuilder::broadcastShapes(node.type(0).getShape(), node.type(1).getShape());
  if (!shape)
    return node.error() << "operands of types " << node.type(0) << " and " << node.type(1) << " do not broadcast";
  base = node.expandTo(base, *shape);
  std::optional<ConstantTensor> exponent = node.evaluate(node.operand(1));
  bool oneNumber = exponent && exponent->size() == 1;
  double power = !oneNumber          ? 0
                 : exponent->isFloat ? exponent->floats.front()
                                     : static_cast<double>(exponent->ints.front());
  if (oneNumber && power == 1)
    return node.replace({base});
  if (!isFloat(base)) {
    if (oneNumber && power == 2)
      return node.replace({node.create<arith::MulIOp>(base, base)});
    if (isFloat(node.operand(1)))
      return node.error() << "an integer to a power of floats is not supported; cast the base first";
    return node.replace({node.create<math::IPowIOp>(base, node.expandTo(node.operand(1), *shape))});
  }
  auto square = [&] { return Value(node.create<arith::MulFOp>(base, base)); };
  auto one = [&] { return node.number(base, 1); };
  if (oneNumber && power == 2)
    return node.replace({square()});
  if (oneNumber && power == 3)
    return node.replace({node.create<arith::MulFOp>(square(), base)});
  if (oneNumber && power == 0.5)
    return node.replace({node.create<math::SqrtOp>(base)});
  if (oneNumber && power == -0.5)
    return node.replace({node.create<arith::DivFOp>(one(), Value(node.create<math::SqrtOp>(base)))});
  if (oneNumber && power == -1)
    return node.replace({node.create<arith::DivFOp>(one(), base)});
  Value exponents = node.expandTo(node.cast(node.operand(1), tensorTypeOf(base).getElementType()), *shape);
  return node.replace({node.create<math::PowFOp>(base, exponents)});
}

/// ONNX's Mod takes the sign of the divisor, with fmod = 1 that of the dividend.
LogicalResult convertMod(NodeConversion &node) {
  auto operands = broadcastOperands(node, 0, 2);
  if (failed(operands))
    return failure();
  Value lhs = (*operands)[0], rhs = (*operands)[1];
  if (isFloat(lhs))
    return node.replace({node.create<arith::RemFOp>(lhs, rhs)});
  Value rest = node.create<arith::RemSIOp>(lhs, rhs);
  if (node.intAttr("fmod", 0))
    return node.replace({rest});
  Value zero = node.integer(lhs, 0);
  Value isNotZero = node.compare(arith::CmpIPredicate::ne, rest, zero);
  Value signsDiffer = node.compare(arith::CmpIPredicate::ne, node.compare(arith::CmpIPredicate::slt, rest, zero),
                                   node.compare(arith::CmpIPredicate::slt, rhs, zero));
  Value adjusts = node.create<arith::AndIOp>(isNotZero, signsDiffer);
  return node.replace({node.select(adjusts, node.create<arith::AddIOp>(rest, rhs), rest)});
}

Value reciprocal(NodeConversion &node, Value x) { return node.create<arith::DivFOp>(node.number(x, 1), x); }

/// The operand where it is positive (or no number), else zero: at zero the gradient is zero, as PyTorch's.
Value relu(NodeConversion &node, Value x) {
  Value zero = node.number(x, 0);
  return node.select(node.compare(arith::CmpFPredicate::UGT, x, zero), x, zero);
}

/// 1 / (1 + exp(-x))
Value sigmoid(NodeConversion &node, Value x) {
  Value exp = node.create<math::ExpOp>(Value(node.create<arith::NegFOp>(x)));
  return reciprocal(node, node.create<arith::AddFOp>(node.number(x, 1), exp));
}

/// x * sigmoid(alpha x)
Value swish(NodeConversion &node, Value x) {
  double alpha = node.floatAttr("alpha", 1);
  Value inner = alpha == 1 ? x : Value(node.create<arith::MulFOp>(x, node.number(x, alpha)));
  return node.create<arith::MulFOp>(x, sigmoid(node, inner));
}

/// log(1 + exp(x)), written so that exp does not overflow: max(x, 0) + log1p(exp(-|x|)).
Value softplus(NodeConversion &node, Value x) {
  Value exp = node.create<math::ExpOp>(Value(node.create<arith::NegFOp>(Value(node.create<math::AbsFOp>(x)))));
  return node.create<arith::AddFOp>(relu(node, x), Value(node.create<math::Log1pOp>(exp)));
}

Value mish(NodeConversion &node, Value x) {
  return node.create<arith::MulFOp>(x, Value(node.create<math::TanhOp>(softplus(node, x))));
}

Value softsign(NodeConversion &node, Value x) {
  Value denominator = node.create<arith::AddFOp>(node.number(x, 1), Value(node.create<math::AbsFOp>(x)));
  return node.create<arith::DivFOp>(x, denominator);
}

Value whenPositive(NodeConversion &node, Value x, Value positive, Value otherwise) {
  return node.select(node.compare(arith::CmpFPredicate::OGT, x, node.number(x, 0)), positive, otherwise);
}

Value leakyRelu(NodeConversion &node, Value x) {
  double slope = node.floatAttr("alpha", 0.01);
  return whenPositive(node, x, x, node.create<arith::MulFOp>(x, node.number(x, slope)));
}

/// x, or alpha (exp(x) - 1) below zero. The exponential sees min(x, 0), so that the branch not taken stays finite.
Value elu(NodeConversion &node, Value x) {
  Value negative = node.create<arith::MinimumFOp>(x, node.number(x, 0));
  Value exp = node.create<math::ExpM1Op>(negative);
  return whenPositive(node, x, x, node.create<arith::MulFOp>(exp, node.number(x, node.floatAttr("alpha", 1))));
}

Value hardSigmoid(NodeConversion &node, Value x) {
  Value scaled = node.create<arith::MulFOp>(x, node.number(x, node.floatAttr("alpha", 0.2)));
  Value shifted = node.create<arith::AddFOp>(scaled, node.number(x, node.floatAttr("beta", 0.5)));
  return node.create<arith::MinimumFOp>(relu(node, shifted), node.number(x, 1));
}

Value hardSwish(NodeConversion &node, Value x) {
  Value shifted = node.create<arith::AddFOp>(x, node.number(x, 3));
  Value clipped = node.create<arith::MinimumFOp>(relu(node, shifted), node.number(x, 6));
  return node.create<arith::MulFOp>(x, Value(node.create<arith::DivFOp>(clipped, node.number(x, 6))));
}

/// 0.5 x (1 + erf(x / sqrt 2)), or with approximate = "tanh" 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))).
LogicalResult convertGelu(NodeConversion &node) {
  if (failed(node.requireOperands(1)))
    return failure();
  Value x = node.operand(0);
  if (!isFloat(x))
    return node.error() << "its operand is " << node.type(0) << " where floats are needed";
  auto times = [&](Value value, double factor) {
    return Value(node.create<arith::MulFOp>(value, node.number(x, factor)));
  };
  Value inner;
  StringRef approximate = node.stringAttr("approximate", "none");
  if (approximate == "tanh") {
    Value cube = node.create<arith::MulFOp>(Value(node.create<arith::MulFOp>(x, x)), x);
    Value sum = node.create<arith::AddFOp>(x, times(cube, 0.044715));
    inner = node.create<math::TanhOp>(times(sum, 0.7978845608028654));
  } else if (approximate == "none") {
    inner = node.create<math::ErfOp>(times(x, 0.7071067811865476));
  } else {
    return node.error() << "approximate = \"" << approximate << "\" is not known; none and tanh are";
  }
  Value onePlus = node.create<arith::AddFOp>(inner, node.number(x, 1));
  return node.replace({node.create<arith::MulFOp>(times(x, 0.5), onePlus)});
}

LogicalResult convertPRelu(NodeConversion &node) {
  auto operands = broadcastOperands(node, 0, 2);
  if (failed(operands))
    return failure();
  Value x = (*operands)[0], slope = (*operands)[1];
  if (!isFloat(x))
    return node.error() << "its operand is " << node.type(0) << " where floats are needed";
  return node.replace({whenPositive(node, x, x, node.create<arith::MulFOp>(x, slope))});
}

/// Bounds are operands, before opset 11 attributes.
LogicalResult convertClip(NodeConversion &node) {
  if (failed(node.requireOperands(1)))
    return failure();
  Value x = node.operand(0);
  ArrayRef<int64_t> shape = node.type(0).getShape();
  auto bound = [&](unsigned position, StringRef name) -> Value {
    if (node.has(position) && node.type(position).getNumElements() == 1 &&
        node.type(position).getElementType() == node.type(0).getElementType())
      return node.expandTo(node.reshape(node.operand(position), {}), shape);
    return node.hasAttr(name) ? node.number(x, node.floatAttr(name, 0)) : Value();
  };
  Value low = bound(1, "min"), high = bound(2, "max");
  if ((node.has(1) && !low) || (node.has(2) && !high))
    return node.error() << "its bounds are not scalars of the operand's type";
  // Selections, not minimum and maximum: at a bound the gradient passes, as PyTorch's clamp has it.
  if (low)
    x = isFloat(x) ? node.select(node.compare(arith::CmpFPredicate::OLT, x, low), low, x)
                   : Value(node.create<arith::MaxSIOp>(x, low));
  if (high)
    x = isFloat(x) ? node.select(node.compare(arith::CmpFPredicate::OGT, x, high), high, x)
                   : Value(node.create<arith::MinSIOp>(x, high));
  return node.replace({x});
}

LogicalResult convertCast(NodeConversion &node) {
  if (failed(node.requireOperands(1)))
    return failure();
  int64_t code = node.intAttr("to", 0);
  Type element = elementType(static_cast<int32_t>(code), node.builder().getContext());
  if (!element)
    return node.error() << "casts to " << elementTypeName(static_cast<int32_t>(code)) << ", which nd does not support";
  return node.replace({node.cast(node.operand(0), element)});
}

LogicalResult convertCastLike(NodeConversion &node) {
  if (failed(node.requireOperands(2)))
    return failure();
  return node.replace({node.cast(node.operand(0), node.type(1).getElementType())});
}

LogicalResult convertIdentity(NodeConversion &node) {
  if (!node.sequence(0).empty())
    return node.replaceBySequence(node.sequence(0));
  return failed(node.requireOperands(1)) ? failure() : node.replace({node.operand(0)});
}

} // namespace

void nd::onnx::populateElementwise(OpTable &table) {
  table.onOp("Add", 7, binary<arith::AddFOp, arith::AddIOp>);
  table.onOp("Sub", 7, binary<arith::SubFOp, arith::SubIOp>);
  table.onOp("Mul", 7, binary<arith::MulFOp, arith::MulIOp>);
  table.onOp("Div", 7, binary<arith::DivFOp, arith::DivSIOp>);
  table.onOp("Mod", 10, convertMod);
  table.onOp("Pow", 7, convertPow);
  table.onOp("Max", 8, variadic<arith::MaximumFOp, arith::MaxSIOp>);
  table.onOp("Min", 8, variadic<arith::MinimumFOp, arith::MinSIOp>);
  table.onOp("Sum", 8, variadic<arith::AddFOp, arith::AddIOp>);
  table.onOp("Mean", 8, variadicMean);
  table.onOp("Neg", 6, convertNeg);
  table.onOp("Abs", 6, convertAbs);
  table.onOp("Sign", 9, convertSign);
  table.onOp("Exp", 6, unary<simple<math::ExpOp>>);
  table.onOp("Log", 6, unary<simple<math::LogOp>>);
  table.onOp("Sqrt", 6, unary<simple<math::SqrtOp>>);
  table.onOp("Sin", 7, unary<simple<math::SinOp>>);
  table.onOp("Cos", 7, unary<simple<math::CosOp>>);
  table.onOp("Tanh", 6, unary<simple<math::TanhOp>>);
  table.onOp("Erf", 9, unary<simple<math::ErfOp>>);
  table.onOp("Floor", 6, unary<simple<math::FloorOp>>);
  table.onOp("Ceil", 6, unary<simple<math::CeilOp>>);
  table.onOp("Round", 11, unary<simple<math::RoundEvenOp>>);
  table.onOp("Reciprocal", 6, unary<reciprocal>);
  table.onOp("Sigmoid", 6, unary<sigmoid>);
  table.onOp("Relu", 6, unary<relu>);
  table.onOp("Swish", 24, unary<swish>);
  table.onOp("Softplus", 1, unary<softplus>);
  table.onOp("Softsign", 1, unary<softsign>);
  table.onOp("Mish", 18, unary<mish>);
  table.onOp("LeakyRelu", 6, unary<leakyRelu>);
  table.onOp("Elu", 6, unary<elu>);
  table.onOp("HardSigmoid", 6, unary<hardSigmoid>);
  table.onOp("HardSwish", 14, unary<hardSwish>);
  table.onOp("Gelu", 20, convertGelu);
  table.onOp("PRelu", 7, convertPRelu);
  table.onOp("Clip", 6, convertClip);
  table.onOp("Cast", 6, convertCast);
  table.onOp("CastLike", 15, convertCastLike);
  table.onOp("Identity", 1, convertIdentity);
}
