// RUN: nd-opt %s -split-input-file -nd-recover-composites -canonicalize | FileCheck %s

// Scale, soft cap, additive causal mask, grouped heads.
// CHECK-LABEL: func @full
// CHECK-SAME: %[[Q:.*]]: tensor<2x4x3x8xf32>, %[[K:.*]]: tensor<2x2x3x8xf32>, %[[V:.*]]: tensor<2x2x3x8xf32>
// CHECK: %[[A:.*]], %{{.*}} = nd.attention %[[Q]], %[[K]], %[[V]] scale = 2.500000e-01 causal {softcap = 5.000000e+01 : f64}
// CHECK-NEXT: return %[[A]]
func.func @full(%q: tensor<2x4x3x8xf32>, %k: tensor<2x2x3x8xf32>, %v: tensor<2x2x3x8xf32>) -> tensor<2x4x3x8xf32> {
  %scale = arith.constant dense<0.25> : tensor<2x4x3x3xf32>
  %cap = arith.constant dense<50.0> : tensor<2x4x3x3xf32>
  %zero = arith.constant dense<0.0> : tensor<3x3xf32>
  %low = arith.constant dense<-3.40282347E+38> : tensor<3x3xf32>
  %row = nd.iota dim = 0 : tensor<3x3xi64>
  %column = nd.iota dim = 1 : tensor<3x3xi64>
  %visible = arith.cmpi sle, %column, %row : tensor<3x3xi64>
  %bias = arith.select %visible, %zero, %low : tensor<3x3xi1>, tensor<3x3xf32>
  %mask = nd.broadcast %bias dims = [2, 3] : tensor<3x3xf32> -> tensor<2x4x3x3xf32>
  %k5 = nd.broadcast %k dims = [0, 1, 3, 4] : tensor<2x2x3x8xf32> -> tensor<2x2x2x3x8xf32>
  %k4 = nd.reshape %k5 : tensor<2x2x2x3x8xf32> -> tensor<2x4x3x8xf32>
  %v5 = nd.broadcast %v dims = [0, 1, 3, 4] : tensor<2x2x3x8xf32> -> tensor<2x2x2x3x8xf32>
  %v4 = nd.reshape %v5 : tensor<2x2x2x3x8xf32> -> tensor<2x4x3x8xf32>
  %qk = nd.dot_general %q, %k4 batch = [0, 1] x [0, 1] contract = [3] x [3] : tensor<2x4x3x8xf32>, tensor<2x4x3x8xf32> -> tensor<2x4x3x3xf32>
  %scaled = arith.mulf %qk, %scale : tensor<2x4x3x3xf32>
  %small = arith.divf %scaled, %cap : tensor<2x4x3x3xf32>
  %tanh = math.tanh %small : tensor<2x4x3x3xf32>
  %capped = arith.mulf %tanh, %cap : tensor<2x4x3x3xf32>
  %masked = arith.addf %capped, %mask : tensor<2x4x3x3xf32>
  %p = nd.softmax %masked dim = 3 : tensor<2x4x3x3xf32>
  %y = nd.dot_general %p, %v4 batch = [0, 1] x [0, 1] contract = [3] x [2] : tensor<2x4x3x3xf32>, tensor<2x4x3x8xf32> -> tensor<2x4x3x8xf32>
  return %y : tensor<2x4x3x8xf32>
}

// -----

// A bias that is learned is no mask of positions: it stays an operand.
// CHECK-LABEL: func @bias
// CHECK: nd.attention %{{.*}} mask(%{{.*}} : tensor<1x4x3x3xf32>) scale = 1.000000e+00 :
func.func @bias(%q: tensor<2x4x3x8xf32>, %k: tensor<2x4x3x8xf32>, %bias: tensor<4x3x3xf32>) -> tensor<2x4x3x8xf32> {
  %mask = nd.broadcast %bias dims = [1, 2, 3] : tensor<4x3x3xf32> -> tensor<2x4x3x3xf32>
  %qk = nd.dot_general %q, %k batch = [0, 1] x [0, 1] contract = [3] x [3] : tensor<2x4x3x8xf32>, tensor<2x4x3x8xf32> -> tensor<2x4x3x3xf32>
  %masked = arith.addf %qk, %mask : tensor<2x4x3x3xf32>
  %p = nd.softmax %masked dim = 3 : tensor<2x4x3x3xf32>
  %y = nd.dot_general %p, %k batch = [0, 1] x [0, 1] contract = [3] x [2] : tensor<2x4x3x3xf32>, tensor<2x4x3x8xf32> -> tensor<2x4x3x8xf32>
  return %y : tensor<2x4x3x8xf32>
}

// -----

// A mask that is scaled after it was added is another function.
// CHECK-LABEL: func @scaled_mask
// CHECK-NOT: nd.attention
func.func @scaled_mask(%q: tensor<2x4x3x8xf32>, %k: tensor<2x4x3x8xf32>, %bias: tensor<2x4x3x3xf32>) -> tensor<2x4x3x8xf32> {
  %half = arith.constant dense<0.5> : tensor<2x4x3x3xf32>
  %qk = nd.dot_general %q, %k batch = [0, 1] x [0, 1] contract = [3] x [3] : tensor<2x4x3x8xf32>, tensor<2x4x3x8xf32> -> tensor<2x4x3x3xf32>
  %masked = arith.addf %qk, %bias : tensor<2x4x3x3xf32>
  %scaled = arith.mulf %masked, %half : tensor<2x4x3x3xf32>
  %p = nd.softmax %scaled dim = 3 : tensor<2x4x3x3xf32>
  %y = nd.dot_general %p, %k batch = [0, 1] x [0, 1] contract = [3] x [2] : tensor<2x4x3x3xf32>, tensor<2x4x3x8xf32> -> tensor<2x4x3x8xf32>
  return %y : tensor<2x4x3x8xf32>
}
