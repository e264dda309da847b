// RUN: nd-opt %s --nd-decompose | FileCheck %s --check-prefix=KEEP
// RUN: nd-opt %s --nd-decompose=all | FileCheck %s

// KEEP-LABEL: func.func @grouped_causal
// KEEP-NEXT: nd.attention
// KEEP-NEXT: nd.attention_grad

// Two query heads share a key head: a dimension of the contraction, so that keys are not repeated and their gradients are
// summed over the group. A query that sees no key has the maximum -inf, and zeros instead of NaN.
// CHECK-LABEL: func.func @grouped_causal
func.func @grouped_causal(%q: tensor<1x4x3x8xf32>, %k: tensor<1x2x3x8xf32>, %v: tensor<1x2x3x6xf32>, %g: tensor<1x4x3x6xf32>)
    -> (tensor<1x4x3x8xf32>, tensor<1x2x3x8xf32>, tensor<1x2x3x6xf32>) {
  // CHECK: %[[Q:.*]] = nd.reshape %arg0 : tensor<1x4x3x8xf32> -> tensor<1x2x2x3x8xf32>
  // CHECK: nd.dot_general %[[Q]], %arg1 batch = [0, 1] x [0, 1] contract = [4] x [3] : tensor<1x2x2x3x8xf32>, tensor<1x2x3x8xf32> -> tensor<1x2x2x3x3xf32>
  // CHECK: arith.cmpi sge, %{{.*}}, %{{.*}} : tensor<3x3xi64>
  // CHECK: %[[MAX:.*]] = nd.reduce max %{{.*}} dims = [3]
  // CHECK: arith.cmpf oeq, %[[MAX]]
  // CHECK: nd.dot_general %{{.*}}, %arg2 batch = [0, 1] x [0, 1] contract = [4] x [2] : tensor<1x2x2x3x3xf32>, tensor<1x2x3x6xf32> -> tensor<1x2x2x3x6xf32>
  %0:2 = nd.attention %q, %k, %v scale = 0.25 causal : tensor<1x4x3x8xf32>, tensor<1x2x3x8xf32>, tensor<1x2x3x6xf32> -> tensor<1x4x3x6xf32>, tensor<1x4x3xf32>
  // CHECK: nd.dot_general {{.*}} contract = [2, 3] x [2, 3] : tensor<1x2x2x3x3xf32>, tensor<1x2x2x3x6xf32> -> tensor<1x2x3x6xf32>
  // CHECK: nd.dot_general {{.*}} contract = [2, 3] x [2, 3] : tensor<1x2x2x3x3xf32>, tensor<1x2x2x3x8xf32> -> tensor<1x2x3x8xf32>
  %1:3 = nd.attention_grad %q, %k, %v result(%0#0, %0#1, %g) scale = 0.25 causal
    : tensor<1x4x3x8xf32>, tensor<1x2x3x8xf32>, tensor<1x2x3x6xf32>, tensor<1x4x3x6xf32>, tensor<1x4x3xf32>, tensor<1x4x3x6xf32>
    -> tensor<1x4x3x8xf32>, tensor<1x2x3x8xf32>, tensor<1x2x3x6xf32>
  return %1#0, %1#1, %1#2 : tensor<1x4x3x8xf32>, tensor<1x2x3x8xf32>, tensor<1x2x3x6xf32>
}
