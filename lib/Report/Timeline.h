//===- Timeline.h - When a rank computes and when it waits ------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The program in its own order: an operation takes what the roofline says; a collective starts where it stands, when
// the links of its class are free of those before it, and a rank that comes to its wait too early waits. Where the
// system has no overlap, the whole collective happens in the wait.
//
//===----------------------------------------------------------------------===//

#ifndef ND_LIB_REPORT_TIMELINE_H
#define ND_LIB_REPORT_TIMELINE_H

#include "Work.h"
#include "nd/Cost/CostModel.h"

namespace nd {

class Timeline {
public:
  /// Seconds that a collective takes.
  using CollectiveTimes = llvm::DenseMap<mlir::Operation *, std::pair<double, GroupShape>>;

  Timeline(rt::ProgramOp program, const WorkCounter &work, const CostModel &model, const CollectiveTimes &times);

  double getEnd() const { return now; }
  double getComputing() const { return computing; }
  /// Seconds that a rank waits for a collective, in all of its executions.
  double getExposed(mlir::Operation *start) const { return exposed.lookup(start); }
  /// Of a whole step.
  double getProducts() const { return products; }
  double getElementwise() const { return elementwise; }
  /// The type in which most products run.
  std::string getType() const;

private:
  void run(mlir::Block &block);
  void compute(mlir::Operation *op);
  void start(mlir::Operation *op);
  void wait(mlir::Operation *start);

  const WorkCounter &work;
  const CostModel &model;
  const CollectiveTimes &times;
  double now = 0, computing = 0, products = 0, elementwise = 0;
  double free[2] = {0, 0}; ///< when the links inside and between nodes are
  llvm::DenseMap<mlir::Operation *, double> done, exposed;
  std::map<std::string, double> byType;
};

} // namespace nd

#endif // ND_LIB_REPORT_TIMELINE_H
