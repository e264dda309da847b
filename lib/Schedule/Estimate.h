//===- Estimate.h - How long operations of a step take ----------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The cost model on a rank's step before it is lowered. Products, attentions and collectives count; the rest depends on
// which kernels it becomes, and counts as nothing: what runs beside a collective takes at least as long as is said.
//
//===----------------------------------------------------------------------===//

#ifndef ND_LIB_SCHEDULE_ESTIMATE_H
#define ND_LIB_SCHEDULE_ESTIMATE_H

#include "mlir/IR/BuiltinOps.h"
#include "nd/Cost/CostModel.h"

namespace nd {

class Estimate {
public:
  Estimate(System system, NodeLayout layout) : model(std::move(system)), layout(std::move(layout)) {}

  /// Seconds that a rank computes.
  double compute(mlir::Operation *op) const;
  /// Seconds of a gather.
  double gather(mlir::Operation *op) const;

private:
  CostModel model;
  NodeLayout layout;
};

} // namespace nd

#endif // ND_LIB_SCHEDULE_ESTIMATE_H
