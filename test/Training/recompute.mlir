// RUN: nd-opt %s --nd-recompute --cse -split-input-file | FileCheck %s

// A chain from a product: the product alone is kept, and copies of the chain stand before their reader. CSE leaves them.
// CHECK-LABEL: func.func @forward
func.func @forward(%x: tensor<4x4xf32> {nd.kind = "weight", nd.name = "x"}, %b: tensor<4xf32>)
    -> (tensor<f32> {nd.kind = "metric", nd.name = "loss"}, tensor<4x4xf32> {nd.kind = "gradient", nd.name = "x"}) {
  // CHECK: %[[DOT:.*]] = nd.dot_general
  // CHECK: %[[BIAS:.*]] = nd.broadcast %arg1
  // CHECK: %[[PRE:.*]] = arith.addf %[[DOT]], %[[BIAS]]
  // CHECK: %[[T:.*]] = math.tanh %[[PRE]]
  // CHECK: %[[Y:.*]] = arith.mulf %[[PRE]], %[[T]]
  // CHECK: nd.reduce sum
  // CHECK: %[[T2:.*]] = math.tanh %[[PRE]] {nd.recomputed}
  // CHECK: %[[TT:.*]] = arith.mulf %[[T2]], %[[T2]]
  // CHECK: %[[Y2:.*]] = arith.mulf %[[PRE]], %[[T2]] {nd.recomputed}
  // CHECK: arith.addf %[[TT]], %[[Y2]]
  %0 = nd.dot_general %x, %x contract = [1] x [0] : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  %bb = nd.broadcast %b dims = [1] : tensor<4xf32> -> tensor<4x4xf32>
  %pre = arith.addf %0, %bb : tensor<4x4xf32>
  %t = math.tanh %pre : tensor<4x4xf32>
  %y = arith.mulf %pre, %t : tensor<4x4xf32>
  %loss = nd.reduce sum %y dims = [0, 1] : tensor<4x4xf32> -> tensor<f32>
  %tt = arith.mulf %t, %t : tensor<4x4xf32>
  %g = arith.addf %tt, %y : tensor<4x4xf32>
  return %loss, %g : tensor<f32>, tensor<4x4xf32>
}

// -----

// What a GEMM of the backward reads is in memory anyway, directly or through a view: nothing is computed again.
// CHECK-LABEL: func.func @forward
// CHECK-NOT: nd.recomputed
func.func @forward(%x: tensor<4x4xf32> {nd.kind = "weight", nd.name = "x"})
    -> (tensor<f32> {nd.kind = "metric", nd.name = "loss"}, tensor<4x4xf32> {nd.kind = "gradient", nd.name = "x"}) {
  %0 = nd.dot_general %x, %x contract = [1] x [0] : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  %t = math.tanh %0 : tensor<4x4xf32>
  %r = nd.reshape %t : tensor<4x4xf32> -> tensor<2x2x4xf32>
  %loss = nd.reduce sum %r dims = [0, 1, 2] : tensor<2x2x4xf32> -> tensor<f32>
  %g = nd.dot_general %r, %r contract = [0, 1] x [0, 1] : tensor<2x2x4xf32>, tensor<2x2x4xf32> -> tensor<4x4xf32>
  %gt = arith.mulf %g, %t : tensor<4x4xf32>
  return %loss, %gt : tensor<f32>, tensor<4x4xf32>
}

// -----

// Of equal cuts the later: the sum is kept, not both of its terms and not the product alone. Its two readers share one copy of what follows.
// CHECK-LABEL: func.func @forward
func.func @forward(%x: tensor<4x4xf32> {nd.kind = "weight", nd.name = "x"}, %z: tensor<4x4xf32>)
    -> (tensor<f32> {nd.kind = "metric", nd.name = "loss"}, tensor<4x4xf32> {nd.kind = "gradient", nd.name = "x"}) {
  // CHECK: %[[SUM:.*]] = arith.addf
  // CHECK: nd.reduce
  // CHECK: %[[E:.*]] = math.exp %[[SUM]] {nd.recomputed}
  // CHECK: %[[F:.*]] = arith.mulf %[[E]], %[[SUM]]
  // CHECK: arith.mulf %[[F]], %[[E]]
  // CHECK-NOT: nd.recomputed
  %0 = nd.dot_general %x, %x contract = [1] x [0] : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  %1 = nd.softmax %0 dim = 1 : tensor<4x4xf32>
  %sum = arith.addf %0, %1 : tensor<4x4xf32>
  %e = math.exp %sum : tensor<4x4xf32>
  %loss = nd.reduce sum %e dims = [0, 1] : tensor<4x4xf32> -> tensor<f32>
  %f = arith.mulf %e, %sum : tensor<4x4xf32>
  %g = arith.mulf %f, %e : tensor<4x4xf32>
  return %loss, %g : tensor<f32>, tensor<4x4xf32>
}

// -----

// What depends on arguments only costs nothing to keep: a mask of positions.
// CHECK-LABEL: func.func @forward
func.func @forward(%x: tensor<4x4xf32> {nd.kind = "weight", nd.name = "x"})
    -> (tensor<f32> {nd.kind = "metric", nd.name = "loss"}, tensor<4x4xf32> {nd.kind = "gradient", nd.name = "x"}) {
  // CHECK: nd.reduce
  // CHECK-NEXT: %[[J:.*]] = nd.iota dim = 1 {nd.recomputed}
  // CHECK-NEXT: %[[I:.*]] = nd.iota dim = 0 {nd.recomputed}
  // CHECK-NEXT: %[[M:.*]] = arith.cmpi sle, %[[J]], %[[I]] {nd.recomputed}
  // CHECK-NEXT: arith.select %[[M]]
  %i = nd.iota dim = 0 : tensor<4x4xi64>
  %j = nd.iota dim = 1 : tensor<4x4xi64>
  %m = arith.cmpi sle, %j, %i : tensor<4x4xi64>
  %zero = arith.constant dense<0.0> : tensor<4x4xf32>
  %0 = arith.select %m, %x, %zero : tensor<4x4xi1>, tensor<4x4xf32>
  %loss = nd.reduce sum %0 dims = [0, 1] : tensor<4x4xf32> -> tensor<f32>
  %g = arith.select %m, %zero, %x : tensor<4x4xi1>, tensor<4x4xf32>
  return %loss, %g : tensor<f32>, tensor<4x4xf32>
}
