//===- ColumnLoop.h - A loop over the columns of a row ----------*- C++ -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_LIB_CODEGEN_KERNELS_COLUMNLOOP_H
#define ND_LIB_CODEGEN_KERNELS_COLUMNLOOP_H

#include "NodeEmitter.h"

namespace nd {

/// Columns [lo, hi): numbers when known, else values.
struct ColumnRange {
  int64_t begin = 0, end = 0;
  mlir::Value lo, hi;
  bool aligned = true;
  unsigned segment = 0;

  static ColumnRange between(int64_t begin, int64_t end) {
    ColumnRange range;
    range.begin = begin, range.end = end;
    return range;
  }
  static ColumnRange between(mlir::Value lo, mlir::Value hi) {
    ColumnRange range;
    range.lo = lo, range.hi = hi;
    return range;
  }
  static ColumnRange of(const Segment &segment, unsigned number, int64_t lanes) {
    ColumnRange range = between(segment.begin, segment.end);
    range.aligned = segment.begin % lanes == 0, range.segment = number;
    return range;
  }
};

/// Emits the work on one vector of columns, from the accumulators before it to those behind it.
using ColumnBody = llvm::function_ref<llvm::SmallVector<mlir::Value>(const Columns &, mlir::ValueRange)>;

/// Whole vectors, then one masked vector. `count` neighbouring vectors are handed out one by one in each round.
llvm::SmallVector<mlir::Value> loopOverColumns(LaneBuilder &b, int64_t lanes, const ColumnRange &range,
                                               mlir::ValueRange initial, ColumnBody body, int64_t count);

} // namespace nd

#endif // ND_LIB_CODEGEN_KERNELS_COLUMNLOOP_H
