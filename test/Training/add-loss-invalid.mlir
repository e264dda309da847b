// RUN: nd-opt %s --nd-add-loss -split-input-file -verify-diagnostics

func.func @forward(%x: tensor<1x1x7xf32>) -> (tensor<1x1x7xf32> {nd.kind = "logits"}) {
  // expected-error @+1 {{training with dropout (p = 0.1) is not supported; export the model with --dropout=off}}
  %0 = nd.dropout %x p = 0.1 : tensor<1x1x7xf32>
  return %0 : tensor<1x1x7xf32>
}

// -----

func.func @forward(%q: tensor<1x1x2x4xf32>) -> (tensor<1x1x2x4xf32> {nd.kind = "output"}) {
  // expected-error @+1 {{training with attention dropout (p = 0.2) is not supported}}
  %0, %1 = nd.attention %q, %q, %q scale = 0.5 {nd.attention_dropout = 0.2 : f64} : tensor<1x1x2x4xf32>, tensor<1x1x2x4xf32>, tensor<1x1x2x4xf32> -> tensor<1x1x2x4xf32>, tensor<1x1x2xf32>
  return %0 : tensor<1x1x2x4xf32>
}

// -----

// expected-error @+1 {{the module has no function @forward; nd-import writes one}}
module {}

// -----

// expected-error @+1 {{the module has no function @forward; it holds @step and is a training step already}}
module {
  func.func @step() { return }
}

// -----

// expected-error @+1 {{has neither a result of kind 'logits' nor 'loss_sum' and 'loss_count' to train on}}
func.func @forward(%x: tensor<4xf32>) -> (tensor<4xf32> {nd.kind = "output"}) {
  return %x : tensor<4xf32>
}

// -----

// expected-error @+1 {{returns loss_sum without loss_count; a loss is exported as (sum, count)}}
func.func @forward(%x: tensor<f32>) -> (tensor<f32> {nd.kind = "loss_sum"}) {
  return %x : tensor<f32>
}

// -----

// expected-error @+1 {{logits must be floats [batch, sequence, vocabulary] to train on, got 'tensor<4x7xf32>'}}
func.func @forward(%x: tensor<4x7xf32>) -> (tensor<4x7xf32> {nd.kind = "logits"}) {
  return %x : tensor<4x7xf32>
}

// -----

// expected-error @+1 {{input 'labels' is of type 'tensor<4xi64>', but the logits need 'tensor<2x2xi64>'}}
func.func @forward(%x: tensor<2x2x7xf32>, %labels: tensor<4xi64> {nd.kind = "input", nd.name = "labels"}) -> (tensor<2x2x7xf32> {nd.kind = "logits"}) {
  return %x : tensor<2x2x7xf32>
}

// -----

// expected-error @+1 {{loss_sum and loss_count must be one number each, got 'tensor<2xf32>'}}
func.func @forward(%x: tensor<2xf32>, %c: tensor<i64>) -> (tensor<2xf32> {nd.kind = "loss_sum"}, tensor<i64> {nd.kind = "loss_count"}) {
  return %x, %c : tensor<2xf32>, tensor<i64>
}
