// RUN: nd-opt %s -split-input-file -verify-diagnostics
func.func @broadcast_stretches(%x: tensor<1x3xf32>) {
  // expected-error @below {{expected dimension 0 of the result to have the operand's size 1 but found 2; a dimension of size 1 is not stretched: reshape it away}}
  %0 = nd.broadcast %x dims = [0, 1] : tensor<1x3xf32> -> tensor<2x3xf32>
  return
}

// -----

func.func @broadcast_misses_a_dim(%x: tensor<2x3xf32>) {
  // expected-error @below {{expected one entry of dims per dimension of the operand, 2, but found [0]}}
  %0 = nd.broadcast %x dims = [0] : tensor<2x3xf32> -> tensor<2x3xf32>
  return
}

// -----

func.func @broadcast_permutes(%x: tensor<3x3xf32>) {
  // expected-error @below {{expected increasing dimensions in dims but found [1, 0]}}
  %0 = nd.broadcast %x dims = [1, 0] : tensor<3x3xf32> -> tensor<3x3xf32>
  return
}

// -----

func.func @broadcast_out_of_range(%x: tensor<3xf32>) {
  // expected-error @below {{expected dims in [0, 2) but found 2}}
  %0 = nd.broadcast %x dims = [2] : tensor<3xf32> -> tensor<3x3xf32>
  return
}

// -----

func.func @broadcast_converts(%x: tensor<3xf32>) {
  // expected-error @below {{failed to verify that all of {input, result} have same element type}}
  %0 = nd.broadcast %x dims = [1] : tensor<3xf32> -> tensor<2x3xf64>
  return
}

// -----

func.func @dynamic_shape(%x: tensor<?xf32>) {
  // expected-error @below {{operand #0 must be statically shaped tensor of any type values, but got 'tensor<?xf32>'}}
  %0 = nd.broadcast %x dims = [1] : tensor<?xf32> -> tensor<2x3xf32>
  return
}

// -----

func.func @reshape_loses_elements(%x: tensor<2x3xf32>) {
  // expected-error @below {{expected as many elements as the operand has, 6 in [2, 3], but found 5 in [5]}}
  %0 = nd.reshape %x : tensor<2x3xf32> -> tensor<5xf32>
  return
}

// -----

func.func @reshape_overflows(%x: tensor<4294967296x4294967296xf32>) {
  // expected-error @below {{expected fewer than 2^63 elements but found shapes [4294967296, 4294967296] and [0]}}
  %0 = nd.reshape %x : tensor<4294967296x4294967296xf32> -> tensor<0xf32>
  return
}

// -----

func.func @transpose_repeats(%x: tensor<2x2xf32>) {
  // expected-error @below {{expected distinct dimensions in permutation but found [0, 0]}}
  %0 = nd.transpose %x permutation = [0, 0] : tensor<2x2xf32> -> tensor<2x2xf32>
  return
}

// -----

func.func @transpose_short(%x: tensor<2x3xf32>) {
  // expected-error @below {{expected a permutation of the operand's 2 dimensions but found [0]}}
  %0 = nd.transpose %x permutation = [0] : tensor<2x3xf32> -> tensor<2xf32>
  return
}

// -----

func.func @transpose_shape(%x: tensor<2x3xf32>) {
  // expected-error @below {{expected result of shape [3, 2] but found [2, 3]}}
  %0 = nd.transpose %x permutation = [1, 0] : tensor<2x3xf32> -> tensor<2x3xf32>
  return
}

// -----

func.func @slice_past_the_end(%x: tensor<2x7xf32>) {
  // expected-error @below {{expected at most 3 elements in dimension 1, from 2 by 2 within 7, but found 4}}
  %0 = nd.slice %x starts = [0, 2] strides = [1, 2] : tensor<2x7xf32> -> tensor<2x4xf32>
  return
}

// -----

func.func @slice_negative_start(%x: tensor<7xf32>) {
  // expected-error @below {{expected starts of at least 0 but found [-1]}}
  %0 = nd.slice %x starts = [-1] strides = [1] : tensor<7xf32> -> tensor<1xf32>
  return
}

// -----

func.func @slice_without_stride(%x: tensor<7xf32>) {
  // expected-error @below {{expected strides of at least 1 but found [0]}}
  %0 = nd.slice %x starts = [0] strides = [0] : tensor<7xf32> -> tensor<7xf32>
  return
}

// -----

func.func @slice_huge_stride(%x: tensor<7xf32>) {
  // expected-error @below {{expected at most 1 elements in dimension 0, from 0 by 9223372036854775807 within 7, but found 3}}
  %0 = nd.slice %x starts = [0] strides = [9223372036854775807] : tensor<7xf32> -> tensor<3xf32>
  return
}

// -----

func.func @slice_rank(%x: tensor<7xf32>) {
  // expected-error @below {{expected result of rank 1 (the operand's) but found rank 2}}
  %0 = nd.slice %x starts = [0] strides = [1] : tensor<7xf32> -> tensor<1x7xf32>
  return
}

// -----

func.func @slice_short(%x: tensor<7x2xf32>) {
  // expected-error @below {{expected one entry of starts per dimension of the operand, 2, but found 1}}
  %0 = nd.slice %x starts = [0] strides = [1, 1] : tensor<7x2xf32> -> tensor<7x2xf32>
  return
}

// -----

func.func @pad_value_is_no_scalar(%x: tensor<3xf32>, %v: tensor<1xf32>) {
  // expected-error @below {{expected value of rank 0 (one number) but found rank 1}}
  %0 = nd.pad %x, %v low = [0] high = [0] interior = [0] : tensor<3xf32>, tensor<1xf32> -> tensor<3xf32>
  return
}

// -----

func.func @pad_negative(%x: tensor<3xf32>, %v: tensor<f32>) {
  // expected-error @below {{expected low of at least 0 but found [-1]}}
  %0 = nd.pad %x, %v low = [-1] high = [0] interior = [0] : tensor<3xf32>, tensor<f32> -> tensor<2xf32>
  return
}

// -----

func.func @pad_shape(%x: tensor<3xf32>, %v: tensor<f32>) {
  // expected-error @below {{expected result of shape [8] but found [6]}}
  %0 = nd.pad %x, %v low = [1] high = [2] interior = [1] : tensor<3xf32>, tensor<f32> -> tensor<6xf32>
  return
}

// -----

func.func @pad_overflows(%x: tensor<3xf32>, %v: tensor<f32>) {
  // expected-error @below {{expected a padded size below 2^63 in dimension 0}}
  %0 = nd.pad %x, %v low = [9223372036854775807] high = [0] interior = [0] : tensor<3xf32>, tensor<f32> -> tensor<3xf32>
  return
}

// -----

func.func @concat_of_nothing() {
  // expected-error @below {{expected at least one operand}}
  %0 = "nd.concat"() <{dim = 0 : i64}> : () -> tensor<0xf32>
  return
}

// -----

func.func @concat_dim(%x: tensor<3xf32>) {
  // expected-error @below {{expected dim in [0, 1) but found 1}}
  %0 = nd.concat %x, %x dim = 1 : tensor<3xf32>, tensor<3xf32> -> tensor<6xf32>
  return
}

// -----

func.func @concat_other_sizes(%x: tensor<2x3xf32>, %y: tensor<4x3xf32>) {
  // expected-error @below {{expected operand 1 of shape [2, 3] but found [4, 3]}}
  %0 = nd.concat %x, %y dim = 1 : tensor<2x3xf32>, tensor<4x3xf32> -> tensor<2x6xf32>
  return
}

// -----

func.func @concat_element_types(%x: tensor<3xf32>, %y: tensor<3xf64>) {
  // expected-error @below {{expected operand 1 of element type 'f32' but found 'f64'}}
  %0 = nd.concat %x, %y dim = 0 : tensor<3xf32>, tensor<3xf64> -> tensor<6xf32>
  return
}

// -----

func.func @concat_result(%x: tensor<3xf32>) {
  // expected-error @below {{expected result of shape [6] but found [5]}}
  %0 = nd.concat %x, %x dim = 0 : tensor<3xf32>, tensor<3xf32> -> tensor<5xf32>
  return
}

// -----

func.func @iota_of_booleans() {
  // expected-error @below {{expected result of floats or integers but found 'i1'; convert it first}}
  %0 = nd.iota dim = 0 : tensor<3xi1>
  return
}

// -----

func.func @iota_dim() {
  // expected-error @below {{expected dim in [0, 1) but found 1}}
  %0 = nd.iota dim = 1 : tensor<3xi64>
  return
}
