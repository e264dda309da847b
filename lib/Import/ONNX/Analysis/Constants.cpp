//===- Constants.cpp - Numbers that constants hold ------------------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Constants.h"

#include "nd/Dialect/ND/IR/Builders.h"

using namespace mlir;
using namespace nd;

std::optional<double> nd::onnx::splatNumber(Value value) {
  for (unsigned depth = 0; depth < 64; ++depth) {
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
