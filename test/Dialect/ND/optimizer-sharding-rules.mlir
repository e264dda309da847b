// RUN: nd-opt %s -nd-print-sharding-rules -o /dev/null 2>&1 | FileCheck %s

// Updates are elementwise, and linear in nothing: the gradient has to be reduced.
func.func @adamw(%p: tensor<4x8xf32>, %s: tensor<f32>, %a: tensor<i1>) {
  // CHECK: remark: ([i0, i1], [i0, i1], [i0, i1], [i0, i1], [], [], [], [], []) -> ([i0, i1], [i0, i1], [i0, i1]) {i0=4, i1=8}{{$}}
  %0, %1, %2 = nd.adamw %p grad %p moments %p, %p scalars %s, %s, %s, %s, %a {beta1 = 0.9 : f64, beta2 = 0.999 : f64, eps = 1.0e-8 : f64, weight_decay = 0.0 : f64}
      : tensor<4x8xf32>, tensor<4x8xf32>, tensor<f32>, tensor<i1>
  return
}
func.func @sgd(%p: tensor<4x8xf32>, %s: tensor<f32>, %a: tensor<i1>) {
  // CHECK: remark: ([i0, i1], [i0, i1], [i0, i1], [], [], []) -> ([i0, i1], [i0, i1]) {i0=4, i1=8}{{$}}
  %0, %1 = nd.sgd %p grad %p momentum %p scalars %s, %s, %a {momentum = 0.9 : f64, weight_decay = 0.0 : f64}
      : tensor<4x8xf32>, tensor<4x8xf32>, tensor<f32>, tensor<i1>, tensor<4x8xf32> -> tensor<4x8xf32>
  return
}
