// RUN: nd-opt %s -split-input-file -nd-recover-composites -canonicalize | FileCheck %s

// kv <= q, q - kv < 2, and padding of keys, all by indices.
// CHECK-LABEL: func @indices
// CHECK-SAME: %[[Q:.*]]: tensor<2x4x3x8xf32>, %[[PAD:.*]]: tensor<2x3xi64>
// CHECK: %[[SEEN:.*]] = arith.cmpi ne, %[[PAD]]
// CHECK: nd.attention %[[Q]], %[[Q]], %[[Q]] key_padding(%[[SEEN]] : tensor<2x3xi1>) scale = 5.000000e-01 causal {window = 2 : i64}
func.func @indices(%q: tensor<2x4x3x8xf32>, %pad: tensor<2x3xi64>) -> tensor<2x4x3x8xf32> {
  %zeros = arith.constant dense<0> : tensor<2x3xi64>
  %two = arith.constant dense<2> : tensor<3x3xi64>
  %row = nd.iota dim = 0 : tensor<3x3xi64>
  %column = nd.iota dim = 1 : tensor<3x3xi64>
  %causal = arith.cmpi sle, %column, %row : tensor<3x3xi64>
  %limit = arith.subi %row, %two : tensor<3x3xi64>
  %near = arith.cmpi sgt, %column, %limit : tensor<3x3xi64>
  %both = arith.andi %causal, %near : tensor<3x3xi1>
  %wide = nd.broadcast %both dims = [2, 3] : tensor<3x3xi1> -> tensor<2x1x3x3xi1>
  %seen = arith.cmpi ne, %pad, %zeros : tensor<2x3xi64>
  %padding = nd.broadcast %seen dims = [0, 3] : tensor<2x3xi1> -> tensor<2x1x3x3xi1>
  %mask = arith.andi %wide, %padding : tensor<2x1x3x3xi1>
  %y, %lse = nd.attention %q, %q, %q mask(%mask : tensor<2x1x3x3xi1>) scale = 5.0e-01 : tensor<2x4x3x8xf32>, tensor<2x4x3x8xf32>, tensor<2x4x3x8xf32> -> tensor<2x4x3x8xf32>, tensor<2x4x3xf32>
  return %y : tensor<2x4x3x8xf32>
}

// -----

// A triangle of ones, and padding of keys.
// CHECK-LABEL: func @triangle
// CHECK-SAME: %[[Q:.*]]: tensor<2x4x3x8xf32>, %[[PAD:.*]]: tensor<2x3xi1>
// CHECK: nd.attention %[[Q]], %[[Q]], %[[Q]] key_padding(%[[PAD]] : tensor<2x3xi1>) scale = 5.000000e-01 causal :
func.func @triangle(%q: tensor<2x4x3x8xf32>, %pad: tensor<2x3xi1>) -> tensor<2x4x3x8xf32> {
  %ones = arith.constant dense<true> : tensor<3x3xi1>
  %none = arith.constant dense<false> : tensor<3x3xi1>
  %row = nd.iota dim = 0 : tensor<3x3xi64>
  %column = nd.iota dim = 1 : tensor<3x3xi64>
  %below = arith.cmpi sle, %column, %row : tensor<3x3xi64>
  %lower = arith.select %below, %ones, %none : tensor<3x3xi1>, tensor<3x3xi1>
  %wide = nd.broadcast %lower dims = [2, 3] : tensor<3x3xi1> -> tensor<2x1x3x3xi1>
  %padding = nd.broadcast %pad dims = [0, 3] : tensor<2x3xi1> -> tensor<2x1x3x3xi1>
  %mask = arith.andi %wide, %padding : tensor<2x1x3x3xi1>
  %y, %lse = nd.attention %q, %q, %q mask(%mask : tensor<2x1x3x3xi1>) scale = 5.0e-01 : tensor<2x4x3x8xf32>, tensor<2x4x3x8xf32>, tensor<2x4x3x8xf32> -> tensor<2x4x3x8xf32>, tensor<2x4x3xf32>
  return %y : tensor<2x4x3x8xf32>
}

// -----

// Positions and documents that the model is given.
// CHECK-LABEL: func @given
// CHECK-SAME: %[[Q:.*]]: tensor<2x4x3x8xf32>, %[[P:.*]]: tensor<2x3xi64>, %[[D:.*]]: tensor<2x3xi64>
// CHECK: nd.attention %[[Q]], %[[Q]], %[[Q]] positions(%[[P]] : tensor<2x3xi64>) documents(%[[D]] : tensor<2x3xi64>) scale = 5.000000e-01 causal :
func.func @given(%q: tensor<2x4x3x8xf32>, %p: tensor<2x3xi64>, %d: tensor<2x3xi64>) -> tensor<2x4x3x8xf32> {
  %pq = nd.broadcast %p dims = [0, 2] : tensor<2x3xi64> -> tensor<2x1x3x3xi64>
  %pk = nd.broadcast %p dims = [0, 3] : tensor<2x3xi64> -> tensor<2x1x3x3xi64>
  %dq = nd.broadcast %d dims = [0, 2] : tensor<2x3xi64> -> tensor<2x1x3x3xi64>
  %dk = nd.broadcast %d dims = [0, 3] : tensor<2x3xi64> -> tensor<2x1x3x3xi64>
  %causal = arith.cmpi sge, %pq, %pk : tensor<2x1x3x3xi64>
  %same = arith.cmpi eq, %dq, %dk : tensor<2x1x3x3xi64>
  %mask = arith.andi %causal, %same : tensor<2x1x3x3xi1>
  %y, %lse = nd.attention %q, %q, %q mask(%mask : tensor<2x1x3x3xi1>) scale = 5.0e-01 : tensor<2x4x3x8xf32>, tensor<2x4x3x8xf32>, tensor<2x4x3x8xf32> -> tensor<2x4x3x8xf32>, tensor<2x4x3xf32>
  return %y : tensor<2x4x3x8xf32>
}

// -----

// A listed mask is read: causal with a window of 2.
// CHECK-LABEL: func @listed
// CHECK-NOT: mask
// CHECK: nd.attention {{.*}} causal {window = 2 : i64}
func.func @listed(%q: tensor<1x1x3x8xf32>) -> tensor<1x1x3x8xf32> {
  %mask = arith.constant dense<[[[[true, false, false], [true, true, false], [false, true, true]]]]> : tensor<1x1x3x3xi1>
  %y, %lse = nd.attention %q, %q, %q mask(%mask : tensor<1x1x3x3xi1>) scale = 5.0e-01 : tensor<1x1x3x8xf32>, tensor<1x1x3x8xf32>, tensor<1x1x3x8xf32> -> tensor<1x1x3x8xf32>, tensor<1x1x3xf32>
  return %y : tensor<1x1x3x8xf32>
}

// -----

// One element off, and a disjunction: general masks stay.
// CHECK-LABEL: func @general
// CHECK: nd.attention {{.*}} mask(
// CHECK: nd.attention {{.*}} mask(
func.func @general(%q: tensor<1x1x3x8xf32>, %prefix: tensor<1x3xi1>) -> (tensor<1x1x3x8xf32>, tensor<1x1x3x8xf32>) {
  %mask = arith.constant dense<[[[[true, false, false], [true, true, true], [true, true, true]]]]> : tensor<1x1x3x3xi1>
  %y, %lse = nd.attention %q, %q, %q mask(%mask : tensor<1x1x3x3xi1>) scale = 5.0e-01 : tensor<1x1x3x8xf32>, tensor<1x1x3x8xf32>, tensor<1x1x3x8xf32> -> tensor<1x1x3x8xf32>, tensor<1x1x3xf32>
  %row = nd.iota dim = 2 : tensor<1x1x3x3xi64>
  %column = nd.iota dim = 3 : tensor<1x1x3x3xi64>
  %causal = arith.cmpi sle, %column, %row : tensor<1x1x3x3xi64>
  %wide = nd.broadcast %prefix dims = [0, 3] : tensor<1x3xi1> -> tensor<1x1x3x3xi1>
  %either = arith.ori %causal, %wide : tensor<1x1x3x3xi1>
  %z, %lse2 = nd.attention %q, %q, %q mask(%either : tensor<1x1x3x3xi1>) scale = 5.0e-01 : tensor<1x1x3x8xf32>, tensor<1x1x3x8xf32>, tensor<1x1x3x8xf32> -> tensor<1x1x3x8xf32>, tensor<1x1x3xf32>
  return %y, %z : tensor<1x1x3x8xf32>, tensor<1x1x3x8xf32>
}
