// RUN: nd-opt %s -split-input-file -verify-diagnostics

// expected-error @+1 {{argument 0: attribute "nd.kind" = "inpt", expected one of input, weight, exp_avg, exp_avg_sq, momentum, scalar}}
func.func @misspelt_kind(%x: tensor<2xi64> {nd.kind = "inpt"}) {
  return
}

// -----

// expected-error @+1 {{result 0: attribute "nd.kind" = "metrics", expected one of logits}}
func.func @misspelt_result(%x: tensor<f32>) -> (tensor<f32> {nd.kind = "metrics"}) {
  return %x : tensor<f32>
}

// -----

// expected-error @+1 {{argument 0: attribute "nd.trainable" = "yes", expected true or false}}
func.func @trainable(%x: tensor<2xf32> {nd.trainable = "yes"}) {
  return
}

// -----

// expected-error @+1 {{argument 0: attribute "nd.bound" = -1 : i64, expected an integer that is not negative}}
func.func @bound(%x: tensor<2xi64> {nd.bound = -1 : i64}) {
  return
}
