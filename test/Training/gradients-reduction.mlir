// RUN: nd-opt %s --nd-build-backward --canonicalize --cse -split-input-file | FileCheck %s

// Ties of a maximum share its gradient equally.
// CHECK-LABEL: func.func @forward
// CHECK-SAME: %[[W:[^:]*]]: tensor<3x4xf32>
func.func @forward(%w: tensor<3x4xf32> {nd.kind = "weight", nd.name = "w"}, %g: tensor<3xf32>, %count: tensor<i64>)
    -> (tensor<f32> {nd.kind = "loss_sum"}, tensor<i64> {nd.kind = "loss_count"}) {
  // CHECK: %[[MAX:.*]] = nd.reduce max %[[W]] dims = [1]
  // CHECK: %[[SEED:.*]] = nd.broadcast %{{.*}} dims = []
  // CHECK: %[[G:.*]] = arith.mulf %[[SEED]]
  // CHECK: %[[WIDE:.*]] = nd.broadcast %[[MAX]] dims = [0]
  // CHECK: %[[TIES:.*]] = arith.cmpf oeq, %[[W]], %[[WIDE]]
  // CHECK: %[[ONES:.*]] = arith.select %[[TIES]]
  // CHECK: %[[NUMBER:.*]] = nd.reduce sum %[[ONES]] dims = [1]
  // CHECK: %[[SHARE:.*]] = arith.divf %[[G]], %[[NUMBER]]
  // CHECK: %[[SPREAD:.*]] = nd.broadcast %[[SHARE]] dims = [0]
  // CHECK: arith.select %[[TIES]], %[[SPREAD]]
  %0 = nd.reduce max %w dims = [1] : tensor<3x4xf32> -> tensor<3xf32>
  %1 = arith.mulf %0, %g : tensor<3xf32>
  %2 = nd.reduce sum %1 dims = [0] : tensor<3xf32> -> tensor<f32>
  return %2, %count : tensor<f32>, tensor<i64>
}

// -----

// A running sum goes back from the other end.
// CHECK-LABEL: func.func @forward
func.func @forward(%w: tensor<3x4xf32> {nd.kind = "weight", nd.name = "w"}, %g: tensor<3x4xf32>, %count: tensor<i64>)
    -> (tensor<f32> {nd.kind = "loss_sum"}, tensor<i64> {nd.kind = "loss_count"}) {
  // CHECK: %[[SEED:.*]] = nd.broadcast %{{.*}} dims = []
  // CHECK: %[[G:.*]] = arith.mulf %[[SEED]]
  // CHECK: %[[R:.*]] = nd.cumsum %[[G]] dim = 0 reverse
  // CHECK: nd.cumsum %[[R]] dim = 1 exclusive :
  %0 = nd.cumsum %w dim = 1 exclusive reverse : tensor<3x4xf32>
  %1 = nd.cumsum %0 dim = 0 : tensor<3x4xf32>
  %2 = arith.mulf %1, %g : tensor<3x4xf32>
  %3 = nd.reduce sum %2 dims = [0, 1] : tensor<3x4xf32> -> tensor<f32>
  return %3, %count : tensor<f32>, tensor<i64>
}

// -----

// CHECK-LABEL: func.func @forward
func.func @forward(%w: tensor<3x7xf32> {nd.kind = "weight", nd.name = "w"}, %g: tensor<3x2xf32>, %count: tensor<i64>)
    -> (tensor<f32> {nd.kind = "loss_sum"}, tensor<i64> {nd.kind = "loss_count"}) {
  // CHECK: %{{.*}}, %[[INDICES:.*]] = nd.top_k
  // CHECK: %[[SEED:.*]] = nd.broadcast %{{.*}} dims = []
  // CHECK: %[[G:.*]] = arith.mulf %[[SEED]]
  // CHECK: nd.scatter_add_along %[[INDICES]], %[[G]] dim = 1 : tensor<3x2xi64>, tensor<3x2xf32> -> tensor<3x7xf32>
  %0, %1 = nd.top_k %w : tensor<3x7xf32> -> tensor<3x2xf32>, tensor<3x2xi64>
  %2 = arith.mulf %0, %g : tensor<3x2xf32>
  %3 = nd.reduce sum %2 dims = [0, 1] : tensor<3x2xf32> -> tensor<f32>
  return %3, %count : tensor<f32>, tensor<i64>
}
