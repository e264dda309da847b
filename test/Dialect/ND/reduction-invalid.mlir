// RUN: nd-opt %s -split-input-file -verify-diagnostics
func.func @dot_sizes(%x: tensor<2x3xf32>, %y: tensor<4x5xf32>) {
  // expected-error @below {{expected equal sizes of the paired contracted dimensions but found 3 (dimension 1 of lhs) and 4 (dimension 0 of rhs)}}
  %0 = nd.dot_general %x, %y contract = [1] x [0] : tensor<2x3xf32>, tensor<4x5xf32> -> tensor<2x5xf32>
  return
}

// -----

func.func @dot_batch_sizes(%x: tensor<2x3xf32>, %y: tensor<4x3xf32>) {
  // expected-error @below {{expected equal sizes of the paired batch dimensions but found 2 (dimension 0 of lhs) and 4 (dimension 0 of rhs)}}
  %0 = nd.dot_general %x, %y batch = [0] x [0] contract = [1] x [1] : tensor<2x3xf32>, tensor<4x3xf32> -> tensor<2xf32>
  return
}

// -----

func.func @dot_pairs(%x: tensor<2x3xf32>, %y: tensor<3x2xf32>) {
  // expected-error @below {{expected as many contracted dimensions of lhs as of rhs but found [1] and [0, 1]}}
  %0 = nd.dot_general %x, %y contract = [1] x [0, 1] : tensor<2x3xf32>, tensor<3x2xf32> -> tensor<2xf32>
  return
}

// -----

func.func @dot_uses_a_dim_twice(%x: tensor<3x3xf32>) {
  // expected-error @below {{expected distinct dimensions in batch and contracted dimensions of lhs but found [0, 0]}}
  %0 = nd.dot_general %x, %x batch = [0] x [0] contract = [0] x [1] : tensor<3x3xf32>, tensor<3x3xf32> -> tensor<3x3xf32>
  return
}

// -----

func.func @dot_range(%x: tensor<3x3xf32>) {
  // expected-error @below {{expected batch and contracted dimensions of rhs in [0, 2) but found 2}}
  %0 = nd.dot_general %x, %x contract = [1] x [2] : tensor<3x3xf32>, tensor<3x3xf32> -> tensor<3x3xf32>
  return
}

// -----

func.func @dot_result(%x: tensor<2x3xf32>, %y: tensor<3x4xf32>) {
  // expected-error @below {{expected result of shape [2, 4] but found [4, 2]}}
  %0 = nd.dot_general %x, %y contract = [1] x [0] : tensor<2x3xf32>, tensor<3x4xf32> -> tensor<4x2xf32>
  return
}

// -----

func.func @dot_element_type(%x: tensor<2x3xf32>, %y: tensor<3x4xf32>) {
  // expected-error @below {{expected result of element type 'f32', the operands', or f32 but found 'bf16'}}
  %0 = nd.dot_general %x, %y contract = [1] x [0] : tensor<2x3xf32>, tensor<3x4xf32> -> tensor<2x4xbf16>
  return
}

// -----

func.func @reduce_repeats(%x: tensor<2x3xf32>) {
  // expected-error @below {{expected distinct dimensions in dims but found [1, 1]}}
  %0 = nd.reduce sum %x dims = [1, 1] : tensor<2x3xf32> -> tensor<2xf32>
  return
}

// -----

func.func @reduce_order(%x: tensor<2x3xf32>) {
  // expected-error @below {{expected increasing dimensions in dims but found [1, 0]}}
  %0 = nd.reduce sum %x dims = [1, 0] : tensor<2x3xf32> -> tensor<f32>
  return
}

// -----

func.func @reduce_shape(%x: tensor<2x3xf32>) {
  // expected-error @below {{expected result of shape [2] but found [3]}}
  %0 = nd.reduce sum %x dims = [1] : tensor<2x3xf32> -> tensor<3xf32>
  return
}

// -----

func.func @reduce_booleans(%x: tensor<2x3xi1>) {
  // expected-error @below {{expected input of floats or integers but found 'i1'; convert it first}}
  %0 = nd.reduce sum %x dims = [1] : tensor<2x3xi1> -> tensor<2xi1>
  return
}

// -----

func.func @reduce_of_nothing(%x: tensor<2x0xf32>) {
  // expected-error @below {{expected a max over at least one element but found size 0 in dimension 1}}
  %0 = nd.reduce max %x dims = [1] : tensor<2x0xf32> -> tensor<2xf32>
  return
}

// -----

func.func @arg_max_shape(%x: tensor<2x3xf32>) {
  // expected-error @below {{expected result of shape [2] but found [3]}}
  %0 = nd.arg_max %x dim = 1 : tensor<2x3xf32> -> tensor<3xi64>
  return
}

// -----

func.func @arg_max_dim(%x: tensor<2x3xf32>) {
  // expected-error @below {{expected dim in [0, 2) but found 2}}
  %0 = nd.arg_max %x dim = 2 : tensor<2x3xf32> -> tensor<2xi64>
  return
}

// -----

func.func @top_k_too_many(%x: tensor<2x3xf32>) {
  // expected-error @below {{expected at most 3 values, the size of the last dimension, but found 4}}
  %0:2 = nd.top_k %x : tensor<2x3xf32> -> tensor<2x4xf32>, tensor<2x4xi64>
  return
}

// -----

func.func @top_k_indices(%x: tensor<2x3xf32>) {
  // expected-error @below {{expected indices of shape [2, 2] but found [2, 3]}}
  %0:2 = nd.top_k %x : tensor<2x3xf32> -> tensor<2x2xf32>, tensor<2x3xi64>
  return
}

// -----

func.func @cumsum_dim(%x: tensor<2x3xf32>) {
  // expected-error @below {{expected dim in [0, 2) but found 2}}
  %0 = nd.cumsum %x dim = 2 : tensor<2x3xf32>
  return
}
