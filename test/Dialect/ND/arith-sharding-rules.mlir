// RUN: nd-opt %s -nd-print-sharding-rules -o /dev/null 2>&1 | FileCheck %s

// Factors of elementwise operations and constants.
func.func @elementwise(%x: tensor<2x8xf32>, %y: tensor<2x8xf32>, %i: tensor<2x8xi64>, %s: tensor<f32>) {
  // Linear in both together, in one, in none.
  // CHECK: remark: ([i0, i1], [i0, i1]) -> ([i0, i1]) {i0=2, i1=8} linear={0+1}{{$}}
  %0 = arith.addf %x, %y : tensor<2x8xf32>
  // CHECK: remark: ([i0, i1]) -> ([i0, i1]) {i0=2, i1=8} linear={0}{{$}}
  %1 = arith.negf %x : tensor<2x8xf32>
  // CHECK: remark: ([i0, i1], [i0, i1]) -> ([i0, i1]) {i0=2, i1=8}{{$}}
  %2 = arith.mulf %x, %y : tensor<2x8xf32>
  // CHECK: remark: ([i0, i1]) -> ([i0, i1]) {i0=2, i1=8} linear={0}{{$}}
  %3 = arith.sitofp %i : tensor<2x8xi64> to tensor<2x8xf32>
  // CHECK: remark: ([i0, i1]) -> ([i0, i1]) {i0=2, i1=8} linear={0}{{$}}
  %4 = arith.truncf %x : tensor<2x8xf32> to tensor<2x8xbf16>
  // CHECK: remark: ([i0, i1]) -> ([i0, i1]) {i0=2, i1=8}{{$}}
  %5 = math.exp %x : tensor<2x8xf32>
  // CHECK: remark: ([i0, i1], [i0, i1]) -> ([i0, i1]) {i0=2, i1=8}{{$}}
  %6 = arith.cmpf olt, %x, %y : tensor<2x8xf32>
  // CHECK: remark: ([i0, i1], [i0, i1], [i0, i1]) -> ([i0, i1]) {i0=2, i1=8}{{$}}
  %7 = arith.select %6, %x, %y : tensor<2x8xi1>, tensor<2x8xf32>
  // CHECK: remark: ([], []) -> ([]) {} linear={0+1}{{$}}
  %8 = arith.subf %s, %s : tensor<f32>
  return
}
func.func @constants() {
  // A dimension along which a constant repeats itself can be sharded.
  // CHECK: remark: () -> ([i0, i1]) {i0=2, i1=3}{{$}}
  %0 = arith.constant dense<1.0> : tensor<2x3xf32>
  // CHECK: remark: () -> ([i0, i1]) {i0=2, i1=3} need_replication={i1}{{$}}
  %1 = arith.constant dense<[[1, 2, 3], [1, 2, 3]]> : tensor<2x3xi64>
  // CHECK: remark: () -> ([i1, i0]) {i0=3, i1=2} need_replication={i1}{{$}}
  %2 = arith.constant dense<[[1, 1, 1], [2, 2, 2]]> : tensor<2x3xi64>
  return
}
func.func @scale(%x: tensor<2x8xf32>, %s: tensor<f32>) {
  // CHECK: remark: ([i0, i1], []) -> ([i0, i1]) {i0=2, i1=8} linear={0}{{$}}
  %0 = nd.scale %x, %s : tensor<2x8xf32>, tensor<f32>
  return
}
