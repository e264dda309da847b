// RUN: nd-opt %s -split-input-file -nd-recover-composites -canonicalize | FileCheck %s

// The first 4 of 6 elements are rotated, by tables whose halves are equal.
// CHECK-LABEL: func @partial
// CHECK-SAME: %[[X:.*]]: tensor<2x5x3x6xf32>, %[[F:.*]]: tensor<2x3x2xf32>
// CHECK-DAG: %[[COS:.*]] = math.cos %[[F]] : tensor<2x3x2xf32>
// CHECK-DAG: %[[SIN:.*]] = math.sin %[[F]] : tensor<2x3x2xf32>
// CHECK: %[[Y:.*]] = nd.rope %[[X]], %[[COS]], %[[SIN]] : tensor<2x5x3x6xf32>, tensor<2x3x2xf32>
// CHECK-NEXT: return %[[Y]]
func.func @partial(%x: tensor<2x5x3x6xf32>, %f: tensor<2x3x2xf32>) -> tensor<2x5x3x6xf32> {
  %twice = nd.concat %f, %f dim = 2 : tensor<2x3x2xf32>, tensor<2x3x2xf32> -> tensor<2x3x4xf32>
  %c = math.cos %twice : tensor<2x3x4xf32>
  %s = math.sin %twice : tensor<2x3x4xf32>
  %cos = nd.broadcast %c dims = [0, 2, 3] : tensor<2x3x4xf32> -> tensor<2x5x3x4xf32>
  %sin = nd.broadcast %s dims = [0, 2, 3] : tensor<2x3x4xf32> -> tensor<2x5x3x4xf32>
  %rotated = nd.slice %x starts = [0, 0, 0, 0] strides = [1, 1, 1, 1] : tensor<2x5x3x6xf32> -> tensor<2x5x3x4xf32>
  %rest = nd.slice %x starts = [0, 0, 0, 4] strides = [1, 1, 1, 1] : tensor<2x5x3x6xf32> -> tensor<2x5x3x2xf32>
  %low = nd.slice %rotated starts = [0, 0, 0, 0] strides = [1, 1, 1, 1] : tensor<2x5x3x4xf32> -> tensor<2x5x3x2xf32>
  %high = nd.slice %rotated starts = [0, 0, 0, 2] strides = [1, 1, 1, 1] : tensor<2x5x3x4xf32> -> tensor<2x5x3x2xf32>
  %neg = arith.negf %high : tensor<2x5x3x2xf32>
  %turned = nd.concat %neg, %low dim = 3 : tensor<2x5x3x2xf32>, tensor<2x5x3x2xf32> -> tensor<2x5x3x4xf32>
  %a = arith.mulf %rotated, %cos : tensor<2x5x3x4xf32>
  %b = arith.mulf %turned, %sin : tensor<2x5x3x4xf32>
  %sum = arith.addf %a, %b : tensor<2x5x3x4xf32>
  %y = nd.concat %sum, %rest dim = 3 : tensor<2x5x3x4xf32>, tensor<2x5x3x2xf32> -> tensor<2x5x3x6xf32>
  return %y : tensor<2x5x3x6xf32>
}

// -----

// Neighbours, on [B, S, H, D], tables repeated element by element.
// CHECK-LABEL: func @interleaved
// CHECK-SAME: %[[X:.*]]: tensor<2x3x5x4xf32>, %[[C:.*]]: tensor<2x3x2xf32>, %[[S:.*]]: tensor<2x3x2xf32>
// CHECK: %[[T:.*]] = nd.transpose %[[X]] permutation = [0, 2, 1, 3]
// CHECK: %[[R:.*]] = nd.rope %[[T]], %[[C]], %[[S]] interleaved
// CHECK: nd.transpose %[[R]] permutation = [0, 2, 1, 3]
func.func @interleaved(%x: tensor<2x3x5x4xf32>, %c: tensor<2x3x2xf32>, %s: tensor<2x3x2xf32>) -> tensor<2x3x5x4xf32> {
  %c2 = nd.broadcast %c dims = [0, 1, 2] : tensor<2x3x2xf32> -> tensor<2x3x2x2xf32>
  %s2 = nd.broadcast %s dims = [0, 1, 2] : tensor<2x3x2xf32> -> tensor<2x3x2x2xf32>
  %c4 = nd.reshape %c2 : tensor<2x3x2x2xf32> -> tensor<2x3x4xf32>
  %s4 = nd.reshape %s2 : tensor<2x3x2x2xf32> -> tensor<2x3x4xf32>
  %cos = nd.broadcast %c4 dims = [0, 1, 3] : tensor<2x3x4xf32> -> tensor<2x3x5x4xf32>
  %sin = nd.broadcast %s4 dims = [0, 1, 3] : tensor<2x3x4xf32> -> tensor<2x3x5x4xf32>
  %even = nd.slice %x starts = [0, 0, 0, 0] strides = [1, 1, 1, 2] : tensor<2x3x5x4xf32> -> tensor<2x3x5x2xf32>
  %odd = nd.slice %x starts = [0, 0, 0, 1] strides = [1, 1, 1, 2] : tensor<2x3x5x4xf32> -> tensor<2x3x5x2xf32>
  %neg = arith.negf %odd : tensor<2x3x5x2xf32>
  %neg1 = nd.reshape %neg : tensor<2x3x5x2xf32> -> tensor<2x3x5x2x1xf32>
  %even1 = nd.reshape %even : tensor<2x3x5x2xf32> -> tensor<2x3x5x2x1xf32>
  %pairs = nd.concat %neg1, %even1 dim = 4 : tensor<2x3x5x2x1xf32>, tensor<2x3x5x2x1xf32> -> tensor<2x3x5x2x2xf32>
  %turned = nd.reshape %pairs : tensor<2x3x5x2x2xf32> -> tensor<2x3x5x4xf32>
  %a = arith.mulf %x, %cos : tensor<2x3x5x4xf32>
  %b = arith.mulf %turned, %sin : tensor<2x3x5x4xf32>
  %y = arith.addf %a, %b : tensor<2x3x5x4xf32>
  return %y : tensor<2x3x5x4xf32>
}

// -----

// Tables that differ within pairs are no rotation.
// CHECK-LABEL: func @unequal
// CHECK-NOT: nd.rope
func.func @unequal(%x: tensor<2x5x3x4xf32>, %c: tensor<2x3x4xf32>, %s: tensor<2x3x4xf32>) -> tensor<2x5x3x4xf32> {
  %cos = nd.broadcast %c dims = [0, 2, 3] : tensor<2x3x4xf32> -> tensor<2x5x3x4xf32>
  %sin = nd.broadcast %s dims = [0, 2, 3] : tensor<2x3x4xf32> -> tensor<2x5x3x4xf32>
  %low = nd.slice %x starts = [0, 0, 0, 0] strides = [1, 1, 1, 1] : tensor<2x5x3x4xf32> -> tensor<2x5x3x2xf32>
  %high = nd.slice %x starts = [0, 0, 0, 2] strides = [1, 1, 1, 1] : tensor<2x5x3x4xf32> -> tensor<2x5x3x2xf32>
  %neg = arith.negf %high : tensor<2x5x3x2xf32>
  %turned = nd.concat %neg, %low dim = 3 : tensor<2x5x3x2xf32>, tensor<2x5x3x2xf32> -> tensor<2x5x3x4xf32>
  %a = arith.mulf %x, %cos : tensor<2x5x3x4xf32>
  %b = arith.mulf %turned, %sin : tensor<2x5x3x4xf32>
  %y = arith.addf %a, %b : tensor<2x5x3x4xf32>
  return %y : tensor<2x5x3x4xf32>
}
