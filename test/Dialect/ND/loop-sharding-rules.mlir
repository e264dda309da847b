// RUN: nd-opt %s -nd-print-sharding-rules -o /dev/null 2>&1 | FileCheck %s

// Microbatches are never spread over ranks; partial sums cross both borders.
// CHECK: remark: ([i2, i0, i1]) -> ([i0, i1]) {i0=2, i1=8, i2=4} need_replication={i2} linear={0}
// CHECK: remark: ([i0, i1]) -> ([i0, i1]) {i0=2, i1=8} linear={0}
func.func @borders(%all: tensor<4x2x8xf32>) -> tensor<2x8xf32> {
  %0 = nd.microbatch %all : tensor<4x2x8xf32> -> tensor<2x8xf32>
  %1 = nd.accumulate %0 count = 4 : tensor<2x8xf32>
  return %1 : tensor<2x8xf32>
}
