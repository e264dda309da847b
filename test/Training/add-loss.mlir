// RUN: nd-opt %s --nd-add-loss -split-input-file | FileCheck %s

// Logits get cross-entropy with labels as they come (the loader has shifted them), and the model's ignore index.
// CHECK-LABEL: func.func @forward
// CHECK-SAME: %[[LOGITS:.*]]: tensor<2x3x7xf32>
// CHECK-SAME: %[[LABELS:.*]]: tensor<2x3xi64> {nd.bound = 7 : i64, nd.kind = "input", nd.name = "labels"}
// CHECK-SAME: -> (tensor<f32> {nd.kind = "loss_sum"}, tensor<i32> {nd.kind = "loss_count"})
module attributes {nd.model = {ignore_index = -1 : i64}} {
  func.func @forward(%x: tensor<2x3x7xf32> {nd.kind = "weight", nd.name = "w"}) -> (tensor<2x3x7xf32> {nd.kind = "logits"}) {
    // CHECK: %[[LOSSES:.*]], %{{.*}} = nd.softmax_cross_entropy %[[LOGITS]], %[[LABELS]] ignore = -1
    // CHECK: %[[SUM:.*]] = nd.reduce sum %[[LOSSES]] dims = [0, 1]
    // CHECK: %[[IGNORED:.*]] = arith.constant dense<-1> : tensor<2x3xi64>
    // CHECK: %[[VALID:.*]] = arith.cmpi ne, %[[LABELS]], %[[IGNORED]]
    // CHECK: %[[ONES:.*]] = arith.extui %[[VALID]]
    // CHECK: %[[COUNT:.*]] = nd.reduce sum %[[ONES]] dims = [0, 1]
    // CHECK: return %[[SUM]], %[[COUNT]]
    return %x : tensor<2x3x7xf32>
  }
}

// -----

// The user's own loss is taken as it is; what else the model returns is dropped.
// CHECK-LABEL: func.func @forward
// CHECK-SAME: -> (tensor<f32> {nd.kind = "loss_sum"}, tensor<f32> {nd.kind = "loss_count"})
// CHECK: %[[SUM:.*]] = nd.reshape %arg0 : tensor<1xf32> -> tensor<f32>
// CHECK: return %[[SUM]], %arg1
func.func @forward(%s: tensor<1xf32>, %c: tensor<f32>, %l: tensor<2x3x7xf32>)
    -> (tensor<2x3x7xf32> {nd.kind = "logits"}, tensor<1xf32> {nd.kind = "loss_sum"}, tensor<f32> {nd.kind = "loss_count"}) {
  return %l, %s, %c : tensor<2x3x7xf32>, tensor<1xf32>, tensor<f32>
}

// -----

// Dropout that drops nothing is no obstacle.
// CHECK-LABEL: func.func @forward
func.func @forward(%x: tensor<1x1x7xf32>, %labels: tensor<1x1xi64> {nd.kind = "input", nd.name = "labels"}) -> (tensor<1x1x7xf32> {nd.kind = "logits"}) {
  // CHECK: nd.softmax_cross_entropy %{{.*}}, %arg1
  %0 = nd.dropout %x p = 0.0 : tensor<1x1x7xf32>
  return %0 : tensor<1x1x7xf32>
}
