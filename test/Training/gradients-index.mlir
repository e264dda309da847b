// RUN: nd-opt %s --nd-build-backward --canonicalize --cse -split-input-file | FileCheck %s

// CHECK-LABEL: func.func @forward
func.func @forward(%w: tensor<5x3xf32> {nd.kind = "weight", nd.name = "w"}, %i: tensor<2x4xi64>, %g: tensor<2x4x3xf32>, %count: tensor<i64>)
    -> (tensor<f32> {nd.kind = "loss_sum"}, tensor<i64> {nd.kind = "loss_count"}) {
  // CHECK: %[[SEED:.*]] = nd.broadcast %{{.*}} dims = []
  // CHECK: %[[G:.*]] = arith.mulf %[[SEED]]
  // CHECK: nd.scatter_add %arg1, %[[G]] {padding_idx = 2 : i64} : tensor<2x4xi64>, tensor<2x4x3xf32> -> tensor<5x3xf32>
  %0 = nd.take %w[%i] {padding_idx = 2 : i64} : tensor<5x3xf32>, tensor<2x4xi64> -> tensor<2x4x3xf32>
  %1 = arith.mulf %0, %g : tensor<2x4x3xf32>
  %2 = nd.reduce sum %1 dims = [0, 1, 2] : tensor<2x4x3xf32> -> tensor<f32>
  return %2, %count : tensor<f32>, tensor<i64>
}

// -----

// Updates of the padding row were dropped: nothing comes back from it.
// CHECK-LABEL: func.func @forward
func.func @forward(%u: tensor<4x3xf32> {nd.kind = "weight", nd.name = "u"}, %n: tensor<5x3xf32> {nd.kind = "weight", nd.name = "n"}, %i: tensor<4xi64>,
    %g: tensor<5x3xf32>, %count: tensor<i64>) -> (tensor<f32> {nd.kind = "loss_sum"}, tensor<i64> {nd.kind = "loss_count"}) {
  // CHECK-DAG: %[[PAD:.*]] = arith.constant dense<2> : tensor<4xi64>
  // CHECK-DAG: %[[ZERO:.*]] = arith.constant dense<0.000000e+00> : tensor<4x3xf32>
  // CHECK: %[[SEED:.*]] = nd.broadcast %{{.*}} dims = []
  // CHECK: %[[G:.*]] = arith.mulf %[[SEED]]
  // CHECK: %[[T:.*]] = nd.take %[[G]][%arg2]
  // CHECK: %[[IS:.*]] = arith.cmpi eq, %arg2, %[[PAD]]
  // CHECK: %[[WIDE:.*]] = nd.broadcast %[[IS]] dims = [0] : tensor<4xi1> -> tensor<4x3xi1>
  // CHECK: %[[DU:.*]] = arith.select %[[WIDE]], %[[ZERO]], %[[T]]
  // CHECK: return %{{.*}}, %{{.*}}, %[[DU]], %[[G]]
  %0 = nd.scatter_add %i, %u init %n : tensor<5x3xf32> {padding_idx = 2 : i64} : tensor<4xi64>, tensor<4x3xf32> -> tensor<5x3xf32>
  %1 = arith.mulf %0, %g : tensor<5x3xf32>
  %2 = nd.reduce sum %1 dims = [0, 1] : tensor<5x3xf32> -> tensor<f32>
  return %2, %count : tensor<f32>, tensor<i64>
}

// -----

// CHECK-LABEL: func.func @forward
func.func @forward(%w: tensor<4x6xf32> {nd.kind = "weight", nd.name = "w"}, %i: tensor<4x2xi64>, %j: tensor<4x2xi64>, %count: tensor<i64>)
    -> (tensor<f32> {nd.kind = "loss_sum"}, tensor<i64> {nd.kind = "loss_count"}) {
  // CHECK: nd.scatter_add_along %arg2, %{{.*}} dim = 1 : tensor<4x2xi64>, tensor<4x2xf32> -> tensor<4x9xf32>
  // CHECK: %[[G:.*]] = arith.addf
  // CHECK: %[[T:.*]] = nd.take_along %[[G]][%arg2] dim = 1 : tensor<4x9xf32>, tensor<4x2xi64> -> tensor<4x2xf32>
  // CHECK: nd.scatter_add_along %arg1, %[[T]] dim = 1 : tensor<4x2xi64>, tensor<4x2xf32> -> tensor<4x6xf32>
  %0 = nd.take_along %w[%i] dim = 1 : tensor<4x6xf32>, tensor<4x2xi64> -> tensor<4x2xf32>
  %1 = nd.scatter_add_along %j, %0 dim = 1 : tensor<4x2xi64>, tensor<4x2xf32> -> tensor<4x9xf32>
  %2 = arith.mulf %1, %1 : tensor<4x9xf32>
  %3 = nd.reduce sum %2 dims = [0, 1] : tensor<4x9xf32> -> tensor<f32>
  return %3, %count : tensor<f32>, tensor<i64>
}
