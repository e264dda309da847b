//===- VectorMath.cpp - Arithmetic on lanes -------------------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Polynomials of elementary functions, inlined: a call of a vector library costs about twice as much, a scalar one
// twelve times. Clamps are comparisons with selects so that a NaN passes through them. No operation here may be
// reassociated: exp's rounding by adding and subtracting a large number would vanish.
//
//===----------------------------------------------------------------------===//

#include "VectorMath.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace nd;

static constexpr auto contract = arith::FastMathFlags::contract;

Value LaneBuilder::number(Type type, double value) {
  Type element = getElementTypeOrSelf(type);
  TypedAttr attribute = isa<FloatType>(element) ? TypedAttr(getFloatAttr(element, value))
                                                : TypedAttr(getIntegerAttr(element, static_cast<int64_t>(value)));
  if (auto vector = dyn_cast<VectorType>(type))
    attribute = DenseElementsAttr::get(vector, attribute);
  return create<arith::ConstantOp>(attribute);
}

Value LaneBuilder::integer(Type type, int64_t value) {
  TypedAttr attribute = getIntegerAttr(getElementTypeOrSelf(type), value);
  if (auto vector = dyn_cast<VectorType>(type))
    attribute = DenseElementsAttr::get(vector, Attribute(attribute));
  return create<arith::ConstantOp>(attribute);
}

Value LaneBuilder::splat(Value value, int64_t lanes) {
  if (lanes == 1 || isa<VectorType>(value.getType()))
    return value;
  return create<vector::BroadcastOp>(VectorType::get({lanes}, value.getType()), value);
}

Value LaneBuilder::laneNumbers(Type element, int64_t lanes) {
  if (lanes == 1)
    return integer(element, 0);
  SmallVector<Attribute> values;
  for (int64_t lane = 0; lane < lanes; ++lane)
    values.push_back(getIntegerAttr(element, lane));
  return create<arith::ConstantOp>(DenseElementsAttr::get(VectorType::get({lanes}, element), values));
}

static bool isFloat(Value value) { return isa<FloatType>(getElementTypeOrSelf(value.getType())); }

Value LaneBuilder::add(Value a, Value b) {
  return isFloat(a) ? create<arith::AddFOp>(a, b, contract).getResult() : create<arith::AddIOp>(a, b).getResult();
}
Value LaneBuilder::sub(Value a, Value b) {
  return isFloat(a) ? create<arith::SubFOp>(a, b, contract).getResult() : create<arith::SubIOp>(a, b).getResult();
}
Value LaneBuilder::mul(Value a, Value b) {
  return isFloat(a) ? create<arith::MulFOp>(a, b, contract).getResult() : create<arith::MulIOp>(a, b).getResult();
}
Value LaneBuilder::div(Value a, Value b) { return create<arith::DivFOp>(a, b, contract); }
Value LaneBuilder::fma(Value a, Value b, Value c) { return create<math::FmaOp>(a, b, c); }
Value LaneBuilder::compare(arith::CmpFPredicate predicate, Value a, Value b) {
  return create<arith::CmpFOp>(predicate, a, b);
}
Value LaneBuilder::select(Value condition, Value a, Value b) { return create<arith::SelectOp>(condition, a, b); }

Value LaneBuilder::bitcast(Value value, Type element) {
  auto vector = dyn_cast<VectorType>(value.getType());
  return create<arith::BitcastOp>(vector ? Type(VectorType::get(vector.getShape(), element)) : element, value);
}

Value LaneBuilder::polynomial(Value x, ArrayRef<double> coefficients) {
  Value result = number(x.getType(), coefficients.front());
  for (double coefficient : coefficients.drop_front())
    result = fma(result, x, number(x.getType(), coefficient));
  return result;
}

Value LaneBuilder::roundToBF16(Value x) {
  Value bits = bitcast(x, getI32Type());
  Type type = bits.getType();
  Value odd = create<arith::AndIOp>(create<arith::ShRUIOp>(bits, integer(type, 16)), integer(type, 1));
  Value rounded = add(add(bits, integer(type, 0x7fff)), odd);
  // Rounding could carry a NaN's mantissa into its sign.
  Value quiet = create<arith::OrIOp>(bits, integer(type, 0x400000));
  rounded = select(compare(arith::CmpFPredicate::UNO, x, x), quiet, rounded);
  return bitcast(create<arith::AndIOp>(rounded, integer(type, -0x10000)), getF32Type());
}

Value LaneBuilder::packBF16(Value x) {
  Value bits = bitcast(x, getI32Type());
  Value upper = create<arith::ShRUIOp>(bits, integer(bits.getType(), 16));
  auto vector = dyn_cast<VectorType>(x.getType());
  return create<arith::TruncIOp>(laneType(getI16Type(), vector ? vector.getNumElements() : 1), upper);
}

Value LaneBuilder::unpackBF16(Value bits) {
  auto vector = dyn_cast<VectorType>(bits.getType());
  Value wide = create<arith::ExtUIOp>(laneType(getI32Type(), vector ? vector.getNumElements() : 1), bits);
  return bitcast(create<arith::ShLIOp>(wide, integer(wide.getType(), 16)), getF32Type());
}

Value LaneBuilder::power(Value base, Value exponent) {
  Value one = integer(base.getType(), 1), zero = integer(base.getType(), 0);
  auto bits = create<scf::ForOp>(i64(0), i64(getElementTypeOrSelf(base.getType()).getIntOrFloatBitWidth()), i64(1),
                                 ValueRange{one, base, exponent});
  OpBuilder::InsertionGuard guard(*this);
  setInsertionPointToStart(bits.getBody());
  Value result = bits.getRegionIterArgs()[0], square = bits.getRegionIterArgs()[1], rest = bits.getRegionIterArgs()[2];
  Value odd = create<arith::CmpIOp>(arith::CmpIPredicate::ne, create<arith::AndIOp>(rest, one), zero);
  result = select(odd, create<arith::MulIOp>(result, square), result);
  create<scf::YieldOp>(ValueRange{result, create<arith::MulIOp>(square, square), create<arith::ShRUIOp>(rest, one)});
  return bits.getResult(0);
}

/// exp(g) 2^(n - 1), doubled, where x = n ln 2 + g: the exponent n = 128 of the largest results needs no case of its
/// own.
Value LaneBuilder::exp(Value x) {
  Type type = x.getType();
  Value low = number(type, -86.64), high = number(type, 89.0);
  Value clamped = select(compare(arith::CmpFPredicate::OGT, low, x), low, x);
  clamped = select(compare(arith::CmpFPredicate::OGT, clamped, high), high, clamped);
  // Adding 1.5 2^23 - 1 leaves n - 1 in the low bits of t.
  Value magic = number(type, 12582911.0);
  Value t = fma(clamped, number(type, 1.4426950408889634), magic);
  Value n = create<arith::SubFOp>(t, magic);
  Value g = fma(n, number(type, -0.693359375), clamped);
  g = fma(n, number(type, 2.12194440e-4), g);
  Value p = polynomial(g, {0x1.6ae66ap-10, 0x1.126856p-7, 0x1.555826p-5, 0x1.555418p-3, 0x1.fffffcp-2, 0x1.0p+0, 1.0});
  Value exponent = create<arith::ShLIOp>(bitcast(t, getI32Type()), integer(bitcast(t, getI32Type()).getType(), 23));
  Value scaled = bitcast(add(bitcast(p, getI32Type()), exponent), getF32Type());
  Value result = create<arith::MulFOp>(scaled, number(type, 2.0));
  // What is not above the lower bound is 0 or NaN.
  Value zero = number(type, 0.0);
  Value rest = select(compare(arith::CmpFPredicate::OGT, zero, x), zero, x);
  return select(compare(arith::CmpFPredicate::OGE, x, low), result, rest);
}

/// x = m 2^n with m in [sqrt(1/2), sqrt(2)); log x = n ln 2 + log(1 + (m - 1)).
Value LaneBuilder::log(Value x) {
  Type type = x.getType();
  Value bits = bitcast(x, getI32Type());
  Type integers = bits.getType();
  Value root = integer(integers, 0x3f3504f3);
  Value shifted = create<arith::SubIOp>(bits, root);
  Value n = create<arith::ShRSIOp>(shifted, integer(integers, 23));
  Value mantissa = create<arith::AndIOp>(shifted, integer(integers, 0x7fffff));
  Value m = bitcast(create<arith::AddIOp>(mantissa, root), getF32Type());
  Value g = create<arith::SubFOp>(m, number(type, 1.0));
  Value nf = create<arith::SIToFPOp>(type, n);
  Value p = polynomial(g, {-0.07621781527996063, 0.12904438376426697, -0.13242988288402557, 0.14181824028491974,
                           -0.16609083116054535, 0.2000197470188141, -0.25001582503318787, 0.33333325386047363,
                           -0.49999988079071045});
  Value square = create<arith::MulFOp>(g, g);
  Value r = fma(square, p, create<arith::MulFOp>(nf, number(type, -2.12194440e-4)));
  Value result = fma(nf, number(type, 0.693359375), create<arith::AddFOp>(g, r));
  // Denormals count as zero, as everywhere.
  double infinity = std::numeric_limits<double>::infinity();
  Value tiny = compare(arith::CmpFPredicate::OLT, x, number(type, 1.17549435e-38));
  Value negative = compare(arith::CmpFPredicate::OLE, x, number(type, -1.17549435e-38));
  result = select(tiny, number(type, -infinity), result);
  result = select(negative, number(type, std::numeric_limits<double>::quiet_NaN()), result);
  Value finite = compare(arith::CmpFPredicate::OLT, x, number(type, infinity));
  return select(finite, result, x); // infinity and NaN
}

/// log(u) x / (u - 1) with u = 1 + x: the error of rounding u cancels.
Value LaneBuilder::log1p(Value x) {
  Type type = x.getType();
  Value one = number(type, 1.0);
  Value u = create<arith::AddFOp>(one, x);
  Value rest = create<arith::SubFOp>(u, one);
  Value result = create<arith::MulFOp>(log(u), create<arith::DivFOp>(x, rest));
  result = select(compare(arith::CmpFPredicate::OEQ, u, one), x, result);
  Value infinity = number(type, std::numeric_limits<double>::infinity());
  return select(compare(arith::CmpFPredicate::OEQ, x, infinity), x, result);
}

/// (y - 1) x / log(y) with y = exp(x), for small x; y - 1 elsewhere.
Value LaneBuilder::expm1(Value x) {
  Type type = x.getType();
  Value one = number(type, 1.0);
  Value y = exp(x);
  Value difference = create<arith::SubFOp>(y, one);
  Value small = create<arith::MulFOp>(difference, create<arith::DivFOp>(x, log(y)));
  Value isSmall = compare(arith::CmpFPredicate::OLT, create<math::AbsFOp>(x), one);
  Value result = select(isSmall, small, difference);
  return select(compare(arith::CmpFPredicate::OEQ, y, one), x, result);
}

/// An odd polynomial near zero, 1 - 2 / (exp(2 |x|) + 1) elsewhere.
Value LaneBuilder::tanh(Value x) {
  Type type = x.getType();
  Value magnitude = create<math::AbsFOp>(x);
  Value square = create<arith::MulFOp>(x, x);
  Value p =
      polynomial(square, {-5.70498872745e-3, 2.06390887954e-2, -5.37397155531e-2, 1.33314422036e-1, -3.33332819422e-1});
  Value small = fma(create<arith::MulFOp>(square, x), p, x);
  Value one = number(type, 1.0);
  Value e = exp(create<arith::AddFOp>(magnitude, magnitude));
  Value quotient = create<arith::DivFOp>(number(type, 2.0), create<arith::AddFOp>(e, one));
  Value large = create<math::CopySignOp>(create<arith::SubFOp>(one, quotient), x);
  return select(compare(arith::CmpFPredicate::OLT, magnitude, number(type, 0.625)), small, large);
}

/// Juffa's approximation: an odd polynomial near zero, 1 - exp(polynomial) elsewhere.
Value LaneBuilder::erf(Value x) {
  Type type = x.getType();
  Value t = create<math::AbsFOp>(x);
  Value s = create<arith::MulFOp>(x, x);
  Value r = fma(number(type, -1.72853470e-5), t, number(type, 3.83197126e-4));
  Value u = fma(number(type, -3.88396438e-3), t, number(type, 2.42546219e-2));
  r = fma(r, s, u);
  for (double coefficient : {-1.06777877e-1, -6.34846687e-1, -1.28717512e-1})
    r = fma(r, t, number(type, coefficient));
  r = fma(r, t, create<arith::NegFOp>(t));
  Value large = create<math::CopySignOp>(create<arith::SubFOp>(number(type, 1.0), exp(r)), x);
  Value p =
      polynomial(s, {-5.96761703e-4, 4.99119423e-3, -2.67681349e-2, 1.12819925e-1, -3.76125336e-1, 1.28379166e-1});
  Value small = fma(p, x, x);
  return select(compare(arith::CmpFPredicate::OGT, t, number(type, 0.927734375)), large, small);
}
