// RUN: nd-opt %s --nd-build-backward --canonicalize --cse -split-input-file | FileCheck %s

// CHECK-LABEL: func.func @forward
func.func @forward(%w: tensor<3x4xf32> {nd.kind = "weight", nd.name = "w"}, %g: tensor<2x3x5x4xf32>, %count: tensor<i64>)
    -> (tensor<f32> {nd.kind = "loss_sum"}, tensor<i64> {nd.kind = "loss_count"}) {
  // CHECK: %[[SEED:.*]] = nd.broadcast %{{.*}} dims = []
  // CHECK: %[[G:.*]] = arith.mulf %[[SEED]]
  // CHECK: nd.reduce sum %[[G]] dims = [0, 2] : tensor<2x3x5x4xf32> -> tensor<3x4xf32>
  %0 = nd.broadcast %w dims = [1, 3] : tensor<3x4xf32> -> tensor<2x3x5x4xf32>
  %1 = arith.mulf %0, %g : tensor<2x3x5x4xf32>
  %2 = nd.reduce sum %1 dims = [0, 1, 2, 3] : tensor<2x3x5x4xf32> -> tensor<f32>
  return %2, %count : tensor<f32>, tensor<i64>
}

// -----

// CHECK-LABEL: func.func @forward
func.func @forward(%w: tensor<3x4x5xf32> {nd.kind = "weight", nd.name = "w"}, %g: tensor<5x3x4xf32>, %count: tensor<i64>)
    -> (tensor<f32> {nd.kind = "loss_sum"}, tensor<i64> {nd.kind = "loss_count"}) {
  // CHECK: %[[SEED:.*]] = nd.broadcast %{{.*}} dims = []
  // CHECK: %[[G:.*]] = arith.mulf %[[SEED]]
  // CHECK: nd.transpose %[[G]] permutation = [1, 2, 0] : tensor<5x3x4xf32> -> tensor<3x4x5xf32>
  %0 = nd.transpose %w permutation = [2, 0, 1] : tensor<3x4x5xf32> -> tensor<5x3x4xf32>
  %1 = arith.mulf %0, %g : tensor<5x3x4xf32>
  %2 = nd.reduce sum %1 dims = [0, 1, 2] : tensor<5x3x4xf32> -> tensor<f32>
  return %2, %count : tensor<f32>, tensor<i64>
}

// -----

// Elements 1, 4, 7 of 10: one before, two between, two after.
// CHECK-LABEL: func.func @forward
func.func @forward(%w: tensor<10xf32> {nd.kind = "weight", nd.name = "w"}, %g: tensor<3xf32>, %count: tensor<i64>)
    -> (tensor<f32> {nd.kind = "loss_sum"}, tensor<i64> {nd.kind = "loss_count"}) {
  // CHECK: %[[ZERO:.*]] = arith.constant dense<0.000000e+00> : tensor<f32>
  // CHECK: %[[SEED:.*]] = nd.broadcast %{{.*}} dims = []
  // CHECK: %[[G:.*]] = arith.mulf %[[SEED]]
  // CHECK: nd.pad %[[G]], %[[ZERO]] low = [1] high = [2] interior = [2]
  %0 = nd.slice %w starts = [1] strides = [3] : tensor<10xf32> -> tensor<3xf32>
  %1 = arith.mulf %0, %g : tensor<3xf32>
  %2 = nd.reduce sum %1 dims = [0] : tensor<3xf32> -> tensor<f32>
  return %2, %count : tensor<f32>, tensor<i64>
}

// -----

// The padding's value receives what the operand does not.
// CHECK-LABEL: func.func @forward
func.func @forward(%w: tensor<3xf32> {nd.kind = "weight", nd.name = "w"}, %v: tensor<f32> {nd.kind = "weight", nd.name = "v"}, %g: tensor<10xf32>,
    %count: tensor<i64>) -> (tensor<f32> {nd.kind = "loss_sum"}, tensor<i64> {nd.kind = "loss_count"}) {
  // CHECK: %[[SEED:.*]] = nd.broadcast %{{.*}} dims = []
  // CHECK: %[[G:.*]] = arith.mulf %[[SEED]]
  // CHECK: %[[DW:.*]] = nd.slice %[[G]] starts = [1] strides = [3]
  // CHECK: %[[ALL:.*]] = nd.reduce sum %[[G]] dims = [0]
  // CHECK: %[[INSIDE:.*]] = nd.reduce sum %[[DW]] dims = [0]
  // CHECK: arith.subf %[[ALL]], %[[INSIDE]]
  %0 = nd.pad %w, %v low = [1] high = [2] interior = [2] : tensor<3xf32>, tensor<f32> -> tensor<10xf32>
  %1 = arith.mulf %0, %g : tensor<10xf32>
  %2 = nd.reduce sum %1 dims = [0] : tensor<10xf32> -> tensor<f32>
  return %2, %count : tensor<f32>, tensor<i64>
}

// -----

// Of a concatenation only the wanted parts are cut out.
// CHECK-LABEL: func.func @forward
func.func @forward(%x: tensor<2x3xf32>, %w: tensor<2x4xf32> {nd.kind = "weight", nd.name = "w"}, %g: tensor<2x7xf32>, %count: tensor<i64>)
    -> (tensor<f32> {nd.kind = "loss_sum"}, tensor<i64> {nd.kind = "loss_count"}) {
  // CHECK: %[[SEED:.*]] = nd.broadcast %{{.*}} dims = []
  // CHECK: %[[G:.*]] = arith.mulf %[[SEED]]
  // CHECK: nd.slice %[[G]] starts = [0, 3] strides = [1, 1] : tensor<2x7xf32> -> tensor<2x4xf32>
  // CHECK-NOT: nd.slice
  %0 = nd.concat %x, %w dim = 1 : tensor<2x3xf32>, tensor<2x4xf32> -> tensor<2x7xf32>
  %1 = arith.mulf %0, %g : tensor<2x7xf32>
  %2 = nd.reshape %1 : tensor<2x7xf32> -> tensor<14xf32>
  %3 = nd.reduce sum %2 dims = [0] : tensor<14xf32> -> tensor<f32>
  return %3, %count : tensor<f32>, tensor<i64>
}
