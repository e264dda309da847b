// RUN: nd-opt %s -nd-print-sharding-rules -o /dev/null 2>&1 | FileCheck %s

// Factors of contractions and reductions.
func.func @dot_general(%x: tensor<2x3x8xf32>, %w: tensor<5x8xf32>, %k: tensor<2x4x8xf32>) {
  // CHECK: remark: ([i0, i1, i3], [i2, i3]) -> ([i0, i1, i2]) {i0=2, i1=3, i2=5, i3=8} reduction={i3:sum} linear={0, 1}{{$}}
  %0 = nd.dot_general %x, %w contract = [2] x [1] : tensor<2x3x8xf32>, tensor<5x8xf32> -> tensor<2x3x5xf32>
  // CHECK: remark: ([i0, i1, i3], [i0, i2, i3]) -> ([i0, i1, i2]) {i0=2, i1=3, i2=4, i3=8} reduction={i3:sum} linear={0, 1}{{$}}
  %1 = nd.dot_general %x, %k batch = [0] x [0] contract = [2] x [2] : tensor<2x3x8xf32>, tensor<2x4x8xf32> -> tensor<2x3x4xf32>
  return
}
func.func @reduce(%x: tensor<2x3x8xf32>) {
  // CHECK: remark: ([i0, i1, i2]) -> ([i1]) {i0=2, i1=3, i2=8} reduction={i0:sum, i2:sum} linear={0}{{$}}
  %0 = nd.reduce sum %x dims = [0, 2] : tensor<2x3x8xf32> -> tensor<3xf32>
  // A maximum of partial sums is none of the sums.
  // CHECK: remark: ([i0, i1, i2]) -> ([i0, i2]) {i0=2, i1=3, i2=8} reduction={i1:max}{{$}}
  %1 = nd.reduce max %x dims = [1] : tensor<2x3x8xf32> -> tensor<2x8xf32>
  return
}
func.func @arg_max(%x: tensor<2x8xf32>) {
  // CHECK: remark: ([i0, i1]) -> ([i0]) {i0=2, i1=8} need_replication={i1}{{$}}
  %0 = nd.arg_max %x dim = 1 : tensor<2x8xf32> -> tensor<2xi64>
  return
}
func.func @top_k(%x: tensor<2x8xf32>) {
  // CHECK: remark: ([i0, i1]) -> ([i0, i2], [i0, i3]) {i0=2, i1=8, i2=3, i3=3} need_replication={i1, i2, i3}{{$}}
  %values, %indices = nd.top_k %x : tensor<2x8xf32> -> tensor<2x3xf32>, tensor<2x3xi64>
  return
}
func.func @cumsum(%x: tensor<2x8xf32>) {
  // CHECK: remark: ([i1, i0]) -> ([i2, i0]) {i0=8, i1=2, i2=2} need_replication={i1, i2} linear={0}{{$}}
  %0 = nd.cumsum %x dim = 0 : tensor<2x8xf32>
  return
}
