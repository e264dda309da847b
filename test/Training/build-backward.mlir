// RUN: nd-opt %s --nd-build-backward --canonicalize --cse -split-input-file | FileCheck %s

// The seed is 1 / max(count, 1), applied where backward starts: gradients are sums over tokens of the mean loss's.
// CHECK-LABEL: func.func @forward
// CHECK-SAME: %[[W:.*]]: tensor<4xf32> {nd.kind = "weight", nd.name = "w"}, %[[X:[^:]*]]: tensor<4xf32>
// CHECK-SAME: %[[COUNT:.*]]: tensor<i64> {nd.kind = "input", nd.name = "count"})
// CHECK-SAME: -> (tensor<f32> {nd.kind = "metric", nd.name = "loss"}, tensor<i64> {nd.kind = "metric", nd.name = "tokens"}, tensor<4xf32> {nd.kind = "gradient", nd.name = "w"})
func.func @forward(%w: tensor<4xf32> {nd.kind = "weight", nd.name = "w"}, %x: tensor<4xf32> {nd.kind = "input", nd.name = "x"},
    %count: tensor<i64> {nd.kind = "input", nd.name = "count"}) -> (tensor<f32> {nd.kind = "loss_sum"}, tensor<i64> {nd.kind = "loss_count"}) {
  // CHECK-DAG: %[[ONE:.*]] = arith.constant dense<1.000000e+00> : tensor<f32>
  // CHECK-DAG: %[[ONEI:.*]] = arith.constant dense<1> : tensor<i64>
  // CHECK: %[[SUM:.*]] = nd.reduce sum
  // CHECK: %[[SAFE:.*]] = arith.maxsi %[[COUNT]], %[[ONEI]]
  // CHECK: %[[DIVISOR:.*]] = arith.sitofp %[[SAFE]]
  // CHECK: %[[LOSS:.*]] = arith.divf %[[SUM]], %[[DIVISOR]]
  // CHECK: %[[SEED:.*]] = arith.divf %[[ONE]], %[[DIVISOR]]
  // CHECK: %[[WIDE:.*]] = nd.broadcast %[[SEED]] dims = []
  // CHECK: %[[GRAD:.*]] = arith.mulf %[[WIDE]], %[[X]]
  // CHECK: return %[[LOSS]], %[[COUNT]], %[[GRAD]]
  %0 = arith.mulf %w, %x : tensor<4xf32>
  %1 = nd.reduce sum %0 dims = [0] : tensor<4xf32> -> tensor<f32>
  return %1, %count : tensor<f32>, tensor<i64>
}

// -----

// A count of floats may be a fraction: only zero is replaced.
// CHECK-LABEL: func.func @forward
// CHECK-SAME: %[[COUNT:[^:]*]]: tensor<f32> {nd.kind = "input"
func.func @forward(%w: tensor<f32> {nd.kind = "weight", nd.name = "w"}, %count: tensor<f32> {nd.kind = "input", nd.name = "count"})
    -> (tensor<f32> {nd.kind = "loss_sum"}, tensor<f32> {nd.kind = "loss_count"}) {
  // CHECK: %[[POSITIVE:.*]] = arith.cmpf ogt, %[[COUNT]]
  // CHECK: %[[DIVISOR:.*]] = arith.select %[[POSITIVE]], %[[COUNT]]
  // CHECK: %[[UP:.*]] = math.ceil %[[COUNT]]
  // CHECK: %[[TOKENS:.*]] = arith.fptosi %[[UP]]
  // CHECK: %{{.*}} = arith.divf %arg0, %[[DIVISOR]]
  // CHECK: %[[SEED:.*]] = arith.divf %{{.*}}, %[[DIVISOR]]
  // CHECK: return %{{.*}}, %[[TOKENS]], %[[SEED]]
  return %w, %count : tensor<f32>, tensor<f32>
}

// -----

// A frozen weight costs nothing, and needs no rule on its path: nothing is emitted for it. One weight, two uses: one gradient.
// CHECK-LABEL: func.func @forward
// CHECK-SAME: tensor<4xf32> {nd.kind = "gradient", nd.name = "tied"})
func.func @forward(%frozen: tensor<4xf32> {nd.kind = "weight", nd.name = "frozen", nd.trainable = false},
    %tied: tensor<4xf32> {nd.kind = "weight", nd.name = "tied"}, %count: tensor<i64> {nd.kind = "input", nd.name = "count"})
    -> (tensor<f32> {nd.kind = "loss_sum"}, tensor<i64> {nd.kind = "loss_count"}) {
  %0 = arith.bitcast %frozen : tensor<4xf32> to tensor<4xi32>
  %1 = arith.bitcast %0 : tensor<4xi32> to tensor<4xf32>
  %2 = arith.mulf %tied, %1 : tensor<4xf32>
  %3 = arith.mulf %tied, %2 : tensor<4xf32>
  %4 = nd.reduce sum %3 dims = [0] : tensor<4xf32> -> tensor<f32>
  // CHECK: %[[SEED:.*]] = nd.broadcast
  // CHECK: %[[A:.*]] = arith.mulf %[[SEED]], %{{.*}}
  // CHECK: %[[B:.*]] = arith.mulf %[[SEED]], %arg1
  // CHECK: %[[C:.*]] = arith.mulf %[[B]], %{{.*}}
  // CHECK: %[[GRAD:.*]] = arith.addf %[[A]], %[[C]]
  // CHECK: return %{{.*}}, %arg2, %[[GRAD]]
  return %4, %count : tensor<f32>, tensor<i64>
}

// -----

// Slices that cover a value are one concatenation in its gradient, whatever their order.
// CHECK-LABEL: func.func @forward
// CHECK-NOT: nd.pad
// CHECK: %[[JOINED:.*]] = nd.concat %[[FIRST:.*]], %{{.*}} dim = 0
// CHECK-NOT: nd.pad
// CHECK: return %{{.*}}, %{{.*}}, %[[JOINED]]
func.func @forward(%w: tensor<6xf32> {nd.kind = "weight", nd.name = "w"}, %count: tensor<i64> {nd.kind = "input", nd.name = "count"})
    -> (tensor<f32> {nd.kind = "loss_sum"}, tensor<i64> {nd.kind = "loss_count"}) {
  %0 = nd.slice %w starts = [3] strides = [1] : tensor<6xf32> -> tensor<3xf32>
  %1 = nd.slice %w starts = [0] strides = [1] : tensor<6xf32> -> tensor<3xf32>
  %2 = arith.mulf %0, %1 : tensor<3xf32>
  %3 = nd.reduce sum %2 dims = [0] : tensor<3xf32> -> tensor<f32>
  return %3, %count : tensor<f32>, tensor<i64>
}

// -----

// A weight that the loss does not reach has no gradient; neither has one that only constant functions see.
// CHECK-LABEL: func.func @forward
// CHECK-SAME: -> (tensor<f32> {nd.kind = "metric", nd.name = "loss"}, tensor<i64> {nd.kind = "metric", nd.name = "tokens"}, tensor<f32> {nd.kind = "gradient", nd.name = "w"})
func.func @forward(%unused: tensor<f32> {nd.kind = "weight", nd.name = "unused"}, %w: tensor<f32> {nd.kind = "weight", nd.name = "w"},
    %rounded: tensor<f32> {nd.kind = "weight", nd.name = "rounded"}, %count: tensor<i64> {nd.kind = "input", nd.name = "count"})
    -> (tensor<f32> {nd.kind = "loss_sum"}, tensor<i64> {nd.kind = "loss_count"}) {
  %0 = math.floor %rounded : tensor<f32>
  %1 = arith.addf %w, %0 : tensor<f32>
  return %1, %count : tensor<f32>, tensor<i64>
}

// -----

// Attention whose mask is trained is differentiated by its definition.
// CHECK-LABEL: func.func @forward
// CHECK-NOT: nd.attention
// CHECK: math.exp
// CHECK-NOT: nd.attention
// CHECK: return
func.func @forward(%q: tensor<1x1x2x4xf32>, %m: tensor<1x1x2x2xf32> {nd.kind = "weight", nd.name = "bias"}, %count: tensor<i64>)
    -> (tensor<f32> {nd.kind = "loss_sum"}, tensor<i64> {nd.kind = "loss_count"}) {
  %0, %1 = nd.attention %q, %q, %q mask(%m : tensor<1x1x2x2xf32>) scale = 0.5 : tensor<1x1x2x4xf32>, tensor<1x1x2x4xf32>, tensor<1x1x2x4xf32> -> tensor<1x1x2x4xf32>, tensor<1x1x2xf32>
  %2 = nd.reduce sum %0 dims = [0, 1, 2, 3] : tensor<1x1x2x4xf32> -> tensor<f32>
  return %2, %count : tensor<f32>, tensor<i64>
}
