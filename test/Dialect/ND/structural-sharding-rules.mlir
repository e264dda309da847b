// RUN: nd-opt %s -nd-print-sharding-rules -o /dev/null 2>&1 | FileCheck %s

// Factors of data movement.
func.func @broadcast(%x: tensor<4xf32>) {
  // New dimensions have factors of their own.
  // CHECK: remark: ([i1]) -> ([i0, i1, i2]) {i0=8, i1=4, i2=2} linear={0}{{$}}
  %0 = nd.broadcast %x dims = [1] : tensor<4xf32> -> tensor<8x4x2xf32>
  return
}
func.func @reshape(%a: tensor<4x6x8xf32>, %b: tensor<24x12xf32>, %c: tensor<6x4xf32>, %d: tensor<1x6xf32>, %e: tensor<6x4x10xf32>) {
  // Merging and splitting: factors are major to minor.
  // CHECK: remark: ([i0, i1, i2]) -> ([i0*i1, i2]) {i0=4, i1=6, i2=8} linear={0}{{$}}
  %0 = nd.reshape %a : tensor<4x6x8xf32> -> tensor<24x8xf32>
  // CHECK: remark: ([i0*i1, i2*i3]) -> ([i0, i1, i2, i3]) {i0=4, i1=6, i2=3, i3=4} linear={0}{{$}}
  %1 = nd.reshape %b : tensor<24x12xf32> -> tensor<4x6x3x4xf32>
  // 6x4 and 4x6 share only their major 2.
  // CHECK: remark: ([i0*i1, i4]) -> ([i0*i2, i3]) {i0=2, i1=3, i2=2, i3=6, i4=4} need_replication={i1, i2, i3, i4} linear={0}{{$}}
  %2 = nd.reshape %c : tensor<6x4xf32> -> tensor<4x6xf32>
  // Dimensions of size 1 come and go.
  // CHECK: remark: ([i1, i0]) -> ([i0, i2, i3]) {i0=6, i1=1, i2=1, i3=1} need_replication={i1, i2, i3} linear={0}{{$}}
  %3 = nd.reshape %d : tensor<1x6xf32> -> tensor<6x1x1xf32>
  // What lies behind a common boundary is shared again.
  // CHECK: remark: ([i0*i1, i4, i5]) -> ([i0*i2, i3, i5]) {i0=2, i1=3, i2=2, i3=6, i4=4, i5=10} need_replication={i1, i2, i3, i4} linear={0}{{$}}
  %4 = nd.reshape %e : tensor<6x4x10xf32> -> tensor<4x6x10xf32>
  return
}
func.func @transpose(%x: tensor<2x3x4xf32>) {
  // CHECK: remark: ([i1, i2, i0]) -> ([i0, i1, i2]) {i0=4, i1=2, i2=3} linear={0}{{$}}
  %0 = nd.transpose %x permutation = [2, 0, 1] : tensor<2x3x4xf32> -> tensor<4x2x3xf32>
  return
}
func.func @slice(%x: tensor<4x8xf32>) {
  // A dimension that is cut needs replication, one that is whole passes.
  // CHECK: remark: ([i0, i1]) -> ([i0, i2]) {i0=4, i1=8, i2=3} need_replication={i1, i2} linear={0}{{$}}
  %0 = nd.slice %x starts = [0, 2] strides = [1, 1] : tensor<4x8xf32> -> tensor<4x3xf32>
  return
}
func.func @pad(%x: tensor<4x8xf32>, %v: tensor<f32>) {
  // Linear only around zeros.
  // CHECK: remark: ([i0, i1], []) -> ([i0, i2]) {i0=4, i1=8, i2=9} need_replication={i1, i2}{{$}}
  %0 = nd.pad %x, %v low = [0, 1] high = [0, 0] interior = [0, 0] : tensor<4x8xf32>, tensor<f32> -> tensor<4x9xf32>
  // CHECK: remark: () -> ([]) {}{{$}}
  %zero = arith.constant dense<0.0> : tensor<f32>
  // CHECK: remark: ([i0, i1], []) -> ([i0, i2]) {i0=4, i1=8, i2=9} need_replication={i1, i2} linear={0}{{$}}
  %1 = nd.pad %x, %zero low = [0, 1] high = [0, 0] interior = [0, 0] : tensor<4x8xf32>, tensor<f32> -> tensor<4x9xf32>
  return
}
func.func @concat(%x: tensor<4x8xf32>, %y: tensor<4x2xf32>) {
  // CHECK: remark: ([i0, i1], [i0, i2]) -> ([i0, i3]) {i0=4, i1=8, i2=2, i3=10} need_replication={i1, i2, i3} linear={0+1}{{$}}
  %0 = nd.concat %x, %y dim = 1 : tensor<4x8xf32>, tensor<4x2xf32> -> tensor<4x10xf32>
  return
}
func.func @iota() {
  // CHECK: remark: () -> ([i0, i1]) {i0=4, i1=8}{{$}}
  %0 = nd.iota dim = 1 : tensor<4x8xi64>
  return
}
