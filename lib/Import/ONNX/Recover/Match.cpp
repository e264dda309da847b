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

std::optional<double> nd::onnx::splatNumber(Value value) {
  for (unsigned depth = 0; depth < 16; ++depth) {
    if (std::optional<APFloat> number = nd::floatSplatOf(value)) {
      bool losesInfo;
      APFloat wide = *number;
      wide.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &losesInfo);
      return wide.convertToDouble();
    }
    Operation *op = value.getDefiningOp();
    if (!isa_and_nonnull<BroadcastOp, ReshapeOp>(op))
      return std::nullopt;
    value = op->getOperand(0);
  }
  return std::nullopt;
}

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
