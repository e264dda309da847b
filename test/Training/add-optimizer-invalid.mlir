// RUN: nd-opt %s --nd-add-optimizer -split-input-file -verify-diagnostics
// RUN: not nd-opt %s --nd-add-optimizer="optimizer=lion" -split-input-file 2>&1 | FileCheck %s --check-prefix=NAME
// RUN: not nd-opt %s --nd-add-optimizer="no-decay=[" -split-input-file 2>&1 | FileCheck %s --check-prefix=GLOB

// NAME: unknown optimizer 'lion'; known are adamw and sgd
// GLOB: no-decay=[: invalid glob pattern

// RUN: not nd-opt %s --nd-add-optimizer="no-decay=*.bias,b" -split-input-file 2>&1 | FileCheck %s --check-prefix=UNUSED
// UNUSED: has no trainable weight that --no-decay=*.bias matches; names are such as 'a' and 'a'

// expected-error @+1 {{returns no result of kind 'gradient'; run nd-build-backward first}}
func.func @forward(%l: tensor<f32>) -> (tensor<f32> {nd.kind = "loss_sum"}) {
  return %l : tensor<f32>
}

// -----

// expected-error @+1 {{returns a gradient for 'b', which is not the name of a weight}}
func.func @forward(%a: tensor<f32> {nd.kind = "weight", nd.name = "a"}) -> (tensor<f32> {nd.kind = "gradient", nd.name = "b"}) {
  return %a : tensor<f32>
}

// -----

// expected-error @+1 {{must return the metrics 'loss' and 'tokens'; run nd-build-backward first}}
func.func @forward(%a: tensor<f32> {nd.kind = "weight", nd.name = "a"}) -> (tensor<f32> {nd.kind = "gradient", nd.name = "a"}) {
  %0 = arith.addf %a, %a : tensor<f32>
  return %0 : tensor<f32>
}
