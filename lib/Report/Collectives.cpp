//===- Collectives.cpp - What collectives say of themselves ---------------===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Collectives.h"

using namespace mlir;
using namespace nd;

int64_t nd::payloadBytes(rt::CollectiveStartOp start) {
  int64_t bytes = 0;
  bool gathers = start.getKind() == rt::CollectiveKind::all_gather;
  for (Value buffer : gathers ? targetsOf(start) : sourcesOf(start))
    bytes += rt::getBytes(cast<MemRefType>(buffer.getType()));
  return bytes;
}

CommKind nd::commKind(rt::CollectiveKind kind) {
  switch (kind) {
  case rt::CollectiveKind::all_reduce:
    return CommKind::AllReduce;
  case rt::CollectiveKind::all_gather:
    return CommKind::AllGather;
  case rt::CollectiveKind::reduce_scatter:
    return CommKind::ReduceScatter;
  }
  llvm_unreachable("all kinds are listed");
}

std::string nd::groupLabel(MeshOp mesh, ArrayAttr axes) {
  std::string label;
  for (auto axis : mesh.getAxes().getAsRange<MeshAxisAttr>())
    if (llvm::is_contained(axes, Attribute(axis.getName())) && axis.getSize() > 1)
      label += (label.empty() ? "" : "+") + axis.getName().getValue().str();
  return label;
}

bool nd::isCollective(Operation *op) { return isa<AllGatherOp, AllReduceOp, ReduceScatterOp>(op); }
