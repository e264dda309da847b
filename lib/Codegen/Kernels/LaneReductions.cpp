//===- LaneReductions.cpp - Reductions of and over lanes ------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "LaneReductions.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace nd;

static constexpr auto sumFlags =
    arith::FastMathFlags::reassoc | arith::FastMathFlags::contract | arith::FastMathFlags::nsz;

Value nd::combineLanes(LaneBuilder &b, ReductionKind kind, Value x, Value y) {
  Type element = getElementTypeOrSelf(x.getType());
  bool isFloat = isa<FloatType>(element), isBool = element.isInteger(1);
  switch (kind) {
  case ReductionKind::sum:
    if (isFloat)
      return b.create<arith::AddFOp>(x, y, sumFlags);
    return b.create<arith::AddIOp>(x, y);
  case ReductionKind::max:
    if (isFloat)
      return b.create<arith::MaximumFOp>(x, y);
    return isBool ? b.create<arith::OrIOp>(x, y).getResult() : b.create<arith::MaxSIOp>(x, y).getResult();
  case ReductionKind::min:
    if (isFloat)
      return b.create<arith::MinimumFOp>(x, y);
    return isBool ? b.create<arith::AndIOp>(x, y).getResult() : b.create<arith::MinSIOp>(x, y).getResult();
  }
  llvm_unreachable("all kinds are handled");
}

Value nd::identityLanes(LaneBuilder &b, ReductionKind kind, Type type) {
  Type element = getElementTypeOrSelf(type);
  if (isa<FloatType>(element)) {
    double infinity = std::numeric_limits<double>::infinity();
    return b.number(type, kind == ReductionKind::sum ? 0.0 : kind == ReductionKind::max ? -infinity : infinity);
  }
  unsigned width = element.getIntOrFloatBitWidth();
  if (kind == ReductionKind::sum)
    return b.integer(type, 0);
  if (width == 1)
    return b.integer(type, kind == ReductionKind::max ? 0 : 1);
  return b.integer(type, kind == ReductionKind::max ? llvm::minIntN(width) : llvm::maxIntN(width));
}

Value nd::acrossLanes(LaneBuilder &b, ReductionKind kind, Value vector) {
  if (!isa<VectorType>(vector.getType()))
    return vector;
  Type element = getElementTypeOrSelf(vector.getType());
  bool isFloat = isa<FloatType>(element), isBool = element.isInteger(1);
  vector::CombiningKind combining = vector::CombiningKind::ADD;
  if (kind == ReductionKind::max)
    combining = isFloat  ? vector::CombiningKind::MAXIMUMF
                : isBool ? vector::CombiningKind::OR
                         : vector::CombiningKind::MAXSI;
  else if (kind == ReductionKind::min)
    combining = isFloat  ? vector::CombiningKind::MINIMUMF
                : isBool ? vector::CombiningKind::AND
                         : vector::CombiningKind::MINSI;
  return b.create<vector::ReductionOp>(combining, vector);
}
