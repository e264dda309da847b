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
  case rt::CollectiveKind::all_to_all:
    return CommKind::AllToAll;
  case rt::CollectiveKind::permute:
    return CommKind::Permute;
  }
  llvm_unreachable("all kinds are listed");
}

bool nd::isCollective(Operation *op) {
  return isa<AllGatherOp, AllReduceOp, ReduceScatterOp, AllToAllOp, PermuteOp>(op);
}
