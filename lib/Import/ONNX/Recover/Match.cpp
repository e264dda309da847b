//===- Match.cpp - What the recovery of composites matches with -----------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Match.h"
#include "Analysis/Positions.h"

using namespace mlir;
using namespace nd;
using namespace nd::onnx;

Value nd::onnx::lookThroughUnitReshapes(Value value) {
  while (auto reshape = value.getDefiningOp<ReshapeOp>()) {
    if (!unitReshapeMap(tensorTypeOf(reshape.getInput()).getShape(), tensorTypeOf(reshape).getShape()))
      break;
    value = reshape.getInput();
  }
  return value;
}

std::optional<Scaled> nd::onnx::matchScaled(Value value) {
  std::optional<Scaled> result;
  if (auto multiply = value.getDefiningOp<arith::MulFOp>()) {
    eitherOrder(multiply, [&](Value base, Value factor) {
      if (std::optional<double> number = splatNumber(factor))
        result = Scaled{base, *number};
      return result.has_value();
    });
  } else if (auto divide = value.getDefiningOp<arith::DivFOp>()) {
    if (std::optional<double> number = splatNumber(divide.getRhs()); number && *number != 0)
      result = Scaled{divide.getLhs(), 1 / *number};
  }
  return result;
}
