// RUN: nd-opt %s | nd-opt | FileCheck %s
// RUN: nd-opt %s --mlir-print-op-generic | nd-opt | FileCheck %s

// CHECK-LABEL: func.func @adamw
func.func @adamw(%p: tensor<2x3xf32>, %g: tensor<2x3xf32>, %m: tensor<2x3xf32>, %v: tensor<2x3xf32>, %lr: tensor<f32>,
                 %b1: tensor<f32>, %b2: tensor<f32>, %s: tensor<f32>, %apply: tensor<i1>) -> tensor<2x3xf32> {
  // CHECK: nd.adamw %{{.*}} grad %{{.*}} moments %{{.*}}, %{{.*}} scalars %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} {
  // CHECK-SAME: } : tensor<2x3xf32>, tensor<2x3xf32>, tensor<f32>, tensor<i1>
  %0:3 = nd.adamw %p grad %g moments %m, %v scalars %lr, %b1, %b2, %s, %apply
    {beta1 = 0.9 : f64, beta2 = 0.999 : f64, eps = 1.0e-8 : f64, weight_decay = 0.01 : f64}
    : tensor<2x3xf32>, tensor<2x3xf32>, tensor<f32>, tensor<i1>
  return %0#0 : tensor<2x3xf32>
}

// CHECK-LABEL: func.func @sgd
func.func @sgd(%p: tensor<3xf32>, %g: tensor<3xf32>, %buffer: tensor<3xf32>, %lr: tensor<f32>, %s: tensor<f32>, %apply: tensor<i1>) -> tensor<3xf32> {
  // CHECK: nd.sgd %{{.*}} grad %{{.*}} scalars %{{.*}}, %{{.*}}, %{{.*}} {{.*}} : tensor<3xf32>, tensor<3xf32>, tensor<f32>, tensor<i1>{{$}}
  %0 = nd.sgd %p grad %g scalars %lr, %s, %apply {momentum = 0.0 : f64, weight_decay = 0.0 : f64}
    : tensor<3xf32>, tensor<3xf32>, tensor<f32>, tensor<i1>
  // CHECK: nd.sgd %{{.*}} grad %{{.*}} momentum %{{.*}} scalars {{.*}} : tensor<3xf32>, tensor<3xf32>, tensor<f32>, tensor<i1>, tensor<3xf32> -> tensor<3xf32>
  %1:2 = nd.sgd %0 grad %g momentum %buffer scalars %lr, %s, %apply {momentum = 0.9 : f64, weight_decay = 0.0 : f64}
    : tensor<3xf32>, tensor<3xf32>, tensor<f32>, tensor<i1>, tensor<3xf32> -> tensor<3xf32>
  return %1#0 : tensor<3xf32>
}
