//===- Timeline.cpp - When a rank computes and when it waits --------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Timeline.h"

using namespace mlir;
using namespace nd;

Timeline::Timeline(rt::ProgramOp program, const WorkCounter &work, const CostModel &model, const CollectiveTimes &times)
    : work(work), model(model), times(times) {
  run(program.getBody().front());
}

void Timeline::run(Block &block) {
  for (Operation &op : block) {
    if (isa<rt::CollectiveStartOp>(op))
      start(&op);
    else if (auto waiting = dyn_cast<rt::WaitOp>(op))
      wait(waiting.getEvent().getDefiningOp());
    else if (op.getNumRegions() != 0)
      for (int64_t turn = 0, turns = op.getAttrOfType<IntegerAttr>("count").getInt(); turn < turns; ++turn)
        run(op.getRegion(0).front());
    else if (!isa<rt::ViewOp, rt::PhaseOp, rt::TensorOp, rt::BufferOp, rt::ConstantOp>(op))
      compute(&op);
  }
}

void Timeline::compute(Operation *op) {
  Work amount = work.count(op);
  StringRef type = amount.type.empty() ? StringRef("f32") : StringRef(amount.type);
  double seconds = model.compute(amount.products, amount.bytes, type);
  now += seconds;
  computing += seconds;
  products += amount.products;
  elementwise += amount.elementwise;
  if (amount.products > 0)
    byType[amount.type] += amount.products;
}

void Timeline::start(Operation *op) {
  if (!model.getSystem().overlap)
    return;
  auto [seconds, shape] = times.lookup(op);
  double &link = free[shape.nodes > 1];
  link = std::max(now, link) + seconds;
  done[op] = link;
}

void Timeline::wait(Operation *start) {
  double until = model.getSystem().overlap ? done.lookup(start) : now + times.lookup(start).first;
  if (until <= now)
    return;
  exposed[start] += until - now;
  now = until;
}

std::string Timeline::getType() const {
  std::string most = "f32";
  double largest = 0;
  for (const auto &[type, flops] : byType)
    if (flops > largest) {
      largest = flops;
      most = type;
    }
  return most;
}
