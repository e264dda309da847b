// RUN: nd-opt %s --nd-build-backward -split-input-file -verify-diagnostics

// The first operation without a rule is named, not the last.
func.func @forward(%w: tensor<4xf32> {nd.kind = "weight", nd.name = "w"}, %count: tensor<i64>) -> (tensor<f32> {nd.kind = "loss_sum"}, tensor<i64> {nd.kind = "loss_count"}) {
  // expected-error @+1 {{'nd.dropout' op has no gradient rule, and lies between a trainable weight and the loss}}
  %0 = nd.dropout %w p = 0.0 : tensor<4xf32>
  %1 = nd.dropout %0 p = 0.0 : tensor<4xf32>
  %2 = nd.reduce sum %1 dims = [0] : tensor<4xf32> -> tensor<f32>
  return %2, %count : tensor<f32>, tensor<i64>
}

// -----

func.func @forward(%w: tensor<2x4xf32> {nd.kind = "weight", nd.name = "w"}, %count: tensor<i64>) -> (tensor<f32> {nd.kind = "loss_sum"}, tensor<i64> {nd.kind = "loss_count"}) {
  // expected-error @+1 {{has no gradient through its result 1, a statistic saved for the backward}}
  %0, %1 = nd.rms_norm %w eps = 1.0e-5 : tensor<2x4xf32> -> tensor<2xf32>
  %2 = nd.reduce sum %1 dims = [0] : tensor<2xf32> -> tensor<f32>
  return %2, %count : tensor<f32>, tensor<i64>
}

// -----

// expected-error @+1 {{has no trainable weight}}
func.func @forward(%w: tensor<f32> {nd.kind = "weight", nd.name = "w", nd.trainable = false}, %count: tensor<i64>) -> (tensor<f32> {nd.kind = "loss_sum"}, tensor<i64> {nd.kind = "loss_count"}) {
  return %w, %count : tensor<f32>, tensor<i64>
}

// -----

// expected-error @+1 {{has a loss that depends on no trainable weight}}
func.func @forward(%w: tensor<f32> {nd.kind = "weight", nd.name = "w"}, %s: tensor<f32>, %count: tensor<i64>) -> (tensor<f32> {nd.kind = "loss_sum"}, tensor<i64> {nd.kind = "loss_count"}) {
  return %s, %count : tensor<f32>, tensor<i64>
}

// -----

// expected-error @+1 {{argument 0 is a trainable weight without a name (nd.name)}}
func.func @forward(%w: tensor<f32> {nd.kind = "weight"}, %count: tensor<i64>) -> (tensor<f32> {nd.kind = "loss_sum"}, tensor<i64> {nd.kind = "loss_count"}) {
  return %w, %count : tensor<f32>, tensor<i64>
}

// -----

// expected-error @+1 {{must return results of kinds 'loss_sum' and 'loss_count'; run nd-add-loss first}}
func.func @forward(%w: tensor<f32> {nd.kind = "weight", nd.name = "w"}) -> (tensor<f32> {nd.kind = "logits"}) {
  return %w : tensor<f32>
}
