// RUN: nd-opt %s -split-input-file -verify-diagnostics

func.func @microbatch_of_number(%x: tensor<f32>) -> tensor<f32> {
  // expected-error@+1 {{expected an operand with one row per microbatch but found 'tensor<f32>'}}
  %0 = nd.microbatch %x : tensor<f32> -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

func.func @microbatch_shape(%x: tensor<4x2xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{expected result of shape [2] but found [4]}}
  %0 = nd.microbatch %x : tensor<4x2xf32> -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @rows(%x: tensor<3x8xf32>) {
  // expected-error@+1 {{expected sliced operand 0 to have 4 rows but found 'tensor<3x8xf32>'}}
  nd.repeat count = 4 sliced(%x : tensor<3x8xf32>) {
  ^bb0(%row: tensor<8xf32>):
    nd.yield
  }
  return
}

// -----

func.func @row_type(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{expected argument 0 of the region to be a row of 'tensor<4x8xf32>' but found 'tensor<4xf32>'}}
  nd.repeat count = 4 sliced(%x : tensor<4x8xf32>) {
  ^bb0(%row: tensor<4xf32>):
    nd.yield
  }
  return
}

// -----

func.func @arguments(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{expected one argument of the region per operand, 1, but found 0}}
  nd.repeat count = 4 captured(%x : tensor<4x8xf32>) {
    nd.yield
  }
  return
}

// -----

func.func @captured_type(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{expected argument 0 of the region to be of its operand's type, 'tensor<4x8xf32>', but found 'tensor<8xf32>'}}
  nd.repeat count = 4 captured(%x : tensor<4x8xf32>) {
  ^bb0(%y: tensor<8xf32>):
    nd.yield
  }
  return
}

// -----

func.func @yields(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error@+1 {{expected one yielded value per carried operand, 1, but found 0}}
  %0 = nd.repeat count = 4 carried(%x : tensor<8xf32>) {
  ^bb0(%y: tensor<8xf32>):
    nd.yield
  }
  return %0 : tensor<8xf32>
}

// -----

func.func @yielded_type(%x: tensor<8xf32>, %z: tensor<4xf32>) -> tensor<8xf32> {
  // expected-error@+1 {{expected yielded value 0 to be of type 'tensor<8xf32>' but found 'tensor<4xf32>'}}
  %0 = nd.repeat count = 4 carried(%x : tensor<8xf32>) captured(%z : tensor<4xf32>) {
  ^bb0(%y: tensor<8xf32>, %a: tensor<4xf32>):
    nd.yield %a : tensor<4xf32>
  }
  return %0 : tensor<8xf32>
}
