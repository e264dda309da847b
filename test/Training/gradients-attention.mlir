// RUN: nd-opt %s --nd-build-backward --canonicalize --cse -split-input-file | FileCheck %s

// All that decides what a query sees goes into the gradient, and the saved result and log-sum-exp.
// CHECK-LABEL: func.func @forward
func.func @forward(%q: tensor<2x4x5x8xf32> {nd.kind = "weight", nd.name = "q"}, %k: tensor<2x2x5x8xf32> {nd.kind = "weight", nd.name = "k"},
    %v: tensor<2x2x5x6xf32> {nd.kind = "weight", nd.name = "v"}, %p: tensor<2x5xi64>, %d: tensor<2x5xi64>, %key: tensor<2x5xi1>, %m: tensor<1x1x5x5xf32>,
    %g: tensor<2x4x5x6xf32>, %count: tensor<i64>) -> (tensor<f32> {nd.kind = "loss_sum"}, tensor<i64> {nd.kind = "loss_count"}) {
  // CHECK: %[[O:.*]], %[[LSE:.*]] = nd.attention %arg0, %arg1, %arg2
  // CHECK: %[[SEED:.*]] = nd.broadcast %{{.*}} dims = []
  // CHECK: %[[G:.*]] = arith.mulf %[[SEED]]
  // CHECK: %[[DQ:.*]], %[[DK:.*]], %[[DV:.*]] = nd.attention_grad %arg0, %arg1, %arg2 result(%[[O]], %[[LSE]], %[[G]])
  // CHECK-SAME: positions(%arg3 : tensor<2x5xi64>) documents(%arg4 : tensor<2x5xi64>) key_padding(%arg5 : tensor<2x5xi1>) mask(%arg6 : tensor<1x1x5x5xf32>)
  // CHECK-SAME: scale = 3.000000e-01 causal {softcap = 2.000000e+00 : f64, window = 3 : i64}
  // CHECK: return %{{.*}}, %{{.*}}, %[[DQ]], %[[DK]], %[[DV]]
  %0, %1 = nd.attention %q, %k, %v positions(%p : tensor<2x5xi64>) documents(%d : tensor<2x5xi64>) key_padding(%key : tensor<2x5xi1>)
      mask(%m : tensor<1x1x5x5xf32>) scale = 0.3 causal {softcap = 2.0 : f64, window = 3 : i64}
      : tensor<2x4x5x8xf32>, tensor<2x2x5x8xf32>, tensor<2x2x5x6xf32> -> tensor<2x4x5x6xf32>, tensor<2x4x5xf32>
  %2 = arith.mulf %0, %g : tensor<2x4x5x6xf32>
  %3 = nd.reduce sum %2 dims = [0, 1, 2, 3] : tensor<2x4x5x6xf32> -> tensor<f32>
  return %3, %count : tensor<f32>, tensor<i64>
}

// -----

// Rotating back by the negative angle.
// CHECK-LABEL: func.func @forward
func.func @forward(%x: tensor<2x3x4x8xf32> {nd.kind = "weight", nd.name = "x"}, %c: tensor<2x4x3xf32>, %s: tensor<2x4x3xf32>, %g: tensor<2x3x4x8xf32>,
    %count: tensor<i64>) -> (tensor<f32> {nd.kind = "loss_sum"}, tensor<i64> {nd.kind = "loss_count"}) {
  // CHECK: %[[SEED:.*]] = nd.broadcast %{{.*}} dims = []
  // CHECK: %[[G:.*]] = arith.mulf %[[SEED]]
  // CHECK: %[[BACK:.*]] = arith.negf %arg2
  // CHECK: nd.rope %[[G]], %arg1, %[[BACK]] interleaved
  // CHECK-NOT: nd.slice
  %0 = nd.rope %x, %c, %s interleaved : tensor<2x3x4x8xf32>, tensor<2x4x3xf32>
  %1 = arith.mulf %0, %g : tensor<2x3x4x8xf32>
  %2 = nd.reduce sum %1 dims = [0, 1, 2, 3] : tensor<2x3x4x8xf32> -> tensor<f32>
  return %2, %count : tensor<f32>, tensor<i64>
}

// -----

// Trainable tables: pairs (a, b) are halves, and every head contributes.
// CHECK-LABEL: func.func @forward
func.func @forward(%x: tensor<2x3x4x8xf32>, %c: tensor<2x4x3xf32> {nd.kind = "weight", nd.name = "c"}, %s: tensor<2x4x3xf32> {nd.kind = "weight", nd.name = "s"},
    %g: tensor<2x3x4x8xf32>, %count: tensor<i64>) -> (tensor<f32> {nd.kind = "loss_sum"}, tensor<i64> {nd.kind = "loss_count"}) {
  // CHECK: %[[SEED:.*]] = nd.broadcast %{{.*}} dims = []
  // CHECK: %[[G:.*]] = arith.mulf %[[SEED]]
  // CHECK: %[[A:.*]] = nd.slice %arg0 starts = [0, 0, 0, 0] strides = [1, 1, 1, 1] : tensor<2x3x4x8xf32> -> tensor<2x3x4x3xf32>
  // CHECK: %[[B:.*]] = nd.slice %arg0 starts = [0, 0, 0, 3]
  // CHECK: %[[GA:.*]] = nd.slice %[[G]] starts = [0, 0, 0, 0]
  // CHECK: %[[GB:.*]] = nd.slice %[[G]] starts = [0, 0, 0, 3]
  // CHECK: %[[C1:.*]] = arith.mulf %[[GA]], %[[A]]
  // CHECK: %[[C2:.*]] = arith.mulf %[[GB]], %[[B]]
  // CHECK: %[[C:.*]] = arith.addf %[[C1]], %[[C2]]
  // CHECK: nd.reduce sum %[[C]] dims = [1]
  // CHECK: %[[S1:.*]] = arith.mulf %[[GB]], %[[A]]
  // CHECK: %[[S2:.*]] = arith.mulf %[[GA]], %[[B]]
  // CHECK: %[[S:.*]] = arith.subf %[[S1]], %[[S2]]
  // CHECK: nd.reduce sum %[[S]] dims = [1]
  %0 = nd.rope %x, %c, %s : tensor<2x3x4x8xf32>, tensor<2x4x3xf32>
  %1 = arith.mulf %0, %g : tensor<2x3x4x8xf32>
  %2 = nd.reduce sum %1 dims = [0, 1, 2, 3] : tensor<2x3x4x8xf32> -> tensor<f32>
  return %2, %count : tensor<f32>, tensor<i64>
}

// -----

// The seed, 1/count, is the gradient of each token's loss.
// CHECK-LABEL: func.func @forward
func.func @forward(%x: tensor<6x7xf32> {nd.kind = "weight", nd.name = "x"}, %l: tensor<6xi64>, %count: tensor<i64>)
    -> (tensor<f32> {nd.kind = "loss_sum"}, tensor<i64> {nd.kind = "loss_count"}) {
  // CHECK: %{{.*}}, %[[LSE:.*]] = nd.softmax_cross_entropy
  // CHECK: %[[SEED:.*]] = arith.divf %cst
  // CHECK: %[[WIDE:.*]] = nd.broadcast %[[SEED]] dims = [] : tensor<f32> -> tensor<6xf32>
  // CHECK: nd.softmax_cross_entropy_grad %arg0, %arg1, %[[LSE]], %[[WIDE]] ignore = -100
  %0, %1 = nd.softmax_cross_entropy %x, %l ignore = -100 : tensor<6x7xf32>, tensor<6xi64> -> tensor<6xf32>
  %2 = nd.reduce sum %0 dims = [0] : tensor<6xf32> -> tensor<f32>
  return %2, %count : tensor<f32>, tensor<i64>
}
