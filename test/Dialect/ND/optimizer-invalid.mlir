// RUN: nd-opt %s -split-input-file -verify-diagnostics
func.func @adamw_grad(%p: tensor<3xf32>, %g: tensor<4xf32>, %s: tensor<f32>, %a: tensor<i1>) {
  // expected-error @below {{expected grad of shape [3] but found [4]}}
  %0:3 = nd.adamw %p grad %g moments %p, %p scalars %s, %s, %s, %s, %a {beta1 = 0.9 : f64, beta2 = 0.9 : f64, eps = 0.0 : f64, weight_decay = 0.0 : f64} : tensor<3xf32>, tensor<4xf32>, tensor<f32>, tensor<i1>
  return
}

// -----

func.func @adamw_beta(%p: tensor<3xf32>, %g: tensor<3xf32>, %s: tensor<f32>, %a: tensor<i1>) {
  // expected-error @below {{expected beta1 in [0, 1) but found 1.000000e+00}}
  %0:3 = nd.adamw %p grad %g moments %p, %p scalars %s, %s, %s, %s, %a {beta1 = 1.0 : f64, beta2 = 0.9 : f64, eps = 0.0 : f64, weight_decay = 0.0 : f64} : tensor<3xf32>, tensor<3xf32>, tensor<f32>, tensor<i1>
  return
}

// -----

func.func @adamw_decay(%p: tensor<3xf32>, %g: tensor<3xf32>, %s: tensor<f32>, %a: tensor<i1>) {
  // expected-error @below {{expected weight_decay to be finite and at least 0.000000e+00 but found -5.000000e-01}}
  %0:3 = nd.adamw %p grad %g moments %p, %p scalars %s, %s, %s, %s, %a {beta1 = 0.9 : f64, beta2 = 0.9 : f64, eps = 0.0 : f64, weight_decay = -0.5 : f64} : tensor<3xf32>, tensor<3xf32>, tensor<f32>, tensor<i1>
  return
}

// -----

func.func @sgd_without_buffer(%p: tensor<3xf32>, %g: tensor<3xf32>, %s: tensor<f32>, %a: tensor<i1>) {
  // expected-error @below {{expected a momentum buffer for momentum 5.000000e-01}}
  %0 = nd.sgd %p grad %g scalars %s, %s, %a {momentum = 0.5 : f64, weight_decay = 0.0 : f64} : tensor<3xf32>, tensor<3xf32>, tensor<f32>, tensor<i1>
  return
}

// -----

func.func @sgd_loses_buffer(%p: tensor<3xf32>, %g: tensor<3xf32>, %s: tensor<f32>, %a: tensor<i1>) {
  // expected-error @below {{expected a new momentum buffer exactly when there is a momentum buffer}}
  %0 = "nd.sgd"(%p, %g, %p, %s, %s, %a) <{momentum = 0.5 : f64, weight_decay = 0.0 : f64}> : (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<f32>, tensor<f32>, tensor<i1>) -> tensor<3xf32>
  return
}

// -----

func.func @sgd_buffer_shape(%p: tensor<3xf32>, %g: tensor<3xf32>, %s: tensor<f32>, %a: tensor<i1>, %b: tensor<4xf32>) {
  // expected-error @below {{expected momentum buffer of shape [3] but found [4]}}
  %0:2 = nd.sgd %p grad %g momentum %b scalars %s, %s, %a {momentum = 0.5 : f64, weight_decay = 0.0 : f64} : tensor<3xf32>, tensor<3xf32>, tensor<f32>, tensor<i1>, tensor<4xf32> -> tensor<4xf32>
  return
}
