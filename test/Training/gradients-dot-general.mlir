// RUN: nd-opt %s --nd-build-backward --canonicalize --cse -split-input-file | FileCheck %s

// torch.nn.Linear's layout: the weight's gradient is one contraction over batch and sequence, nothing is transposed.
// CHECK-LABEL: func.func @forward
// CHECK-SAME: %[[X:[^:]*]]: tensor<2x3x5xf32>
// CHECK-SAME: %[[W:[^:]*]]: tensor<7x5xf32>
func.func @forward(%x: tensor<2x3x5xf32> {nd.kind = "weight", nd.name = "x"}, %w: tensor<7x5xf32> {nd.kind = "weight", nd.name = "w"},
    %g: tensor<2x3x7xf32>, %count: tensor<i64>) -> (tensor<f32> {nd.kind = "loss_sum"}, tensor<i64> {nd.kind = "loss_count"}) {
  // CHECK: %[[SEED:.*]] = nd.broadcast %{{.*}} dims = []
  // CHECK: %[[G:.*]] = arith.mulf %[[SEED]]
  // CHECK-NOT: nd.transpose
  // CHECK: %[[DX:.*]] = nd.dot_general %[[G]], %[[W]] contract = [2] x [0] : {{.*}} -> tensor<2x3x5xf32>
  // CHECK: %[[DW:.*]] = nd.dot_general %[[G]], %[[X]] contract = [0, 1] x [0, 1] : {{.*}} -> tensor<7x5xf32>
  // CHECK: return %{{.*}}, %{{.*}}, %[[DX]], %[[DW]]
  %0 = nd.dot_general %x, %w contract = [2] x [1] : tensor<2x3x5xf32>, tensor<7x5xf32> -> tensor<2x3x7xf32>
  %1 = arith.mulf %0, %g : tensor<2x3x7xf32>
  %2 = nd.reduce sum %1 dims = [0, 1, 2] : tensor<2x3x7xf32> -> tensor<f32>
  return %2, %count : tensor<f32>, tensor<i64>
}

// -----

// GPT-2's layout, [in, out]: operands change places instead of a transpose.
// CHECK-LABEL: func.func @forward
// CHECK-SAME: %[[X:[^:]*]]: tensor<2x3x5xf32>
// CHECK-SAME: %[[W:[^:]*]]: tensor<5x7xf32>
func.func @forward(%x: tensor<2x3x5xf32> {nd.kind = "weight", nd.name = "x"}, %w: tensor<5x7xf32> {nd.kind = "weight", nd.name = "w"},
    %g: tensor<2x3x7xf32>, %count: tensor<i64>) -> (tensor<f32> {nd.kind = "loss_sum"}, tensor<i64> {nd.kind = "loss_count"}) {
  // CHECK: %[[SEED:.*]] = nd.broadcast %{{.*}} dims = []
  // CHECK: %[[G:.*]] = arith.mulf %[[SEED]]
  // CHECK-NOT: nd.transpose
  // CHECK: %[[DX:.*]] = nd.dot_general %[[G]], %[[W]] contract = [2] x [1] : {{.*}} -> tensor<2x3x5xf32>
  // CHECK: %[[DW:.*]] = nd.dot_general %[[X]], %[[G]] contract = [0, 1] x [0, 1] : {{.*}} -> tensor<5x7xf32>
  // CHECK: return %{{.*}}, %{{.*}}, %[[DX]], %[[DW]]
  %0 = nd.dot_general %x, %w contract = [2] x [0] : tensor<2x3x5xf32>, tensor<5x7xf32> -> tensor<2x3x7xf32>
  %1 = arith.mulf %0, %g : tensor<2x3x7xf32>
  %2 = nd.reduce sum %1 dims = [0, 1, 2] : tensor<2x3x7xf32> -> tensor<f32>
  return %2, %count : tensor<f32>, tensor<i64>
}

// -----

// Batch dimensions stay batch dimensions (attention scores q k^T).
// CHECK-LABEL: func.func @forward
// CHECK-SAME: %[[Q:[^:]*]]: tensor<2x3x4x8xf32>
// CHECK-SAME: %[[K:[^:]*]]: tensor<2x3x5x8xf32>
func.func @forward(%q: tensor<2x3x4x8xf32> {nd.kind = "weight", nd.name = "q"}, %k: tensor<2x3x5x8xf32> {nd.kind = "weight", nd.name = "k"},
    %g: tensor<2x3x4x5xf32>, %count: tensor<i64>) -> (tensor<f32> {nd.kind = "loss_sum"}, tensor<i64> {nd.kind = "loss_count"}) {
  // CHECK: %[[SEED:.*]] = nd.broadcast %{{.*}} dims = []
  // CHECK: %[[G:.*]] = arith.mulf %[[SEED]]
  // CHECK: nd.dot_general %[[G]], %[[K]] batch = [0, 1] x [0, 1] contract = [3] x [2] : {{.*}} -> tensor<2x3x4x8xf32>
  // CHECK: nd.dot_general %[[G]], %[[Q]] batch = [0, 1] x [0, 1] contract = [2] x [2] : {{.*}} -> tensor<2x3x5x8xf32>
  %0 = nd.dot_general %q, %k batch = [0, 1] x [0, 1] contract = [3] x [3] : tensor<2x3x4x8xf32>, tensor<2x3x5x8xf32> -> tensor<2x3x4x5xf32>
  %1 = arith.mulf %0, %g : tensor<2x3x4x5xf32>
  %2 = nd.reduce sum %1 dims = [0, 1, 2, 3] : tensor<2x3x4x5xf32> -> tensor<f32>
  return %2, %count : tensor<f32>, tensor<i64>
}

// -----

// Where no order of operands fits, one transpose puts the dimensions where they belong: w is [heads, in, out], contracted over heads and out.
// CHECK-LABEL: func.func @forward
// CHECK-SAME: %[[X:[^:]*]]: tensor<6x2x4xf32>
func.func @forward(%x: tensor<6x2x4xf32>, %w: tensor<2x3x4xf32> {nd.kind = "weight", nd.name = "w"}, %g: tensor<6x3xf32>, %count: tensor<i64>)
    -> (tensor<f32> {nd.kind = "loss_sum"}, tensor<i64> {nd.kind = "loss_count"}) {
  // CHECK: %[[SEED:.*]] = nd.broadcast %{{.*}} dims = []
  // CHECK: %[[G:.*]] = arith.mulf %[[SEED]]
  // CHECK: %[[P:.*]] = nd.dot_general %[[G]], %[[X]] contract = [0] x [0] : {{.*}} -> tensor<3x2x4xf32>
  // CHECK: %[[DW:.*]] = nd.transpose %[[P]] permutation = [1, 0, 2] : tensor<3x2x4xf32> -> tensor<2x3x4xf32>
  // CHECK: return %{{.*}}, %{{.*}}, %[[DW]]
  %0 = nd.dot_general %x, %w contract = [1, 2] x [0, 2] : tensor<6x2x4xf32>, tensor<2x3x4xf32> -> tensor<6x3xf32>
  %1 = arith.mulf %0, %g : tensor<6x3xf32>
  %2 = nd.reduce sum %1 dims = [0, 1] : tensor<6x3xf32> -> tensor<f32>
  return %2, %count : tensor<f32>, tensor<i64>
}
