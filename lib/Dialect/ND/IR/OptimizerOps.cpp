//===- OptimizerOps.cpp - Parameter updates: verifiers --------------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Verify.h"
#include "nd/Dialect/ND/IR/ND.h"
#include <limits>

using namespace mlir;
using namespace nd;

#define GET_OP_CLASSES
#include "nd/Dialect/ND/IR/NDOptimizerOps.cpp.inc"

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// A decay rate: 1 would divide by a zero bias correction.
LogicalResult verifyRate(Operation *op, StringRef name, double value) {
  if (value >= 0 && value < 1)
    return success();
  return op->emitOpError() << "expected " << name << " in [0, 1) but found " << value;
}

} // namespace

LogicalResult AdamWOp::verify() {
  if (failed(verify::shape(*this, "grad", getGrad().getType(), getParam().getType().getShape())) ||
      failed(verifyRate(*this, "beta1", getBeta1().convertToDouble())) ||
      failed(verifyRate(*this, "beta2", getBeta2().convertToDouble())) ||
      failed(verify::inRange(*this, "eps", getEps().convertToDouble(), 0, kInfinity)))
    return failure();
  return verify::inRange(*this, "weight_decay", getWeightDecay().convertToDouble(), 0, kInfinity);
}

LogicalResult SgdOp::verify() {
  ArrayRef<int64_t> shape = getParam().getType().getShape();
  if (failed(verify::shape(*this, "grad", getGrad().getType(), shape)) ||
      failed(verify::inRange(*this, "momentum", getMomentum().convertToDouble(), 0, kInfinity)) ||
      failed(verify::inRange(*this, "weight_decay", getWeightDecay().convertToDouble(), 0, kInfinity)))
    return failure();
  if (!getMomentumBuffer() != !getNewMomentumBuffer())
    return emitOpError() << "expected a new momentum buffer exactly when there is a momentum buffer";
  if (!getMomentumBuffer()) {
    if (!getMomentum().isZero())
      return emitOpError() << "expected a momentum buffer for momentum " << getMomentum().convertToDouble();
    return success();
  }
  if (failed(verify::shape(*this, "momentum buffer", getMomentumBuffer().getType(), shape)))
    return failure();
  return verify::sameTensor(*this, "new momentum buffer", getNewMomentumBuffer().getType(), "momentum buffer",
                            getMomentumBuffer().getType());
}
