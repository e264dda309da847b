// RUN: nd-opt %s -split-input-file -verify-diagnostics
func.func @take_shape(%t: tensor<5x4xf32>, %i: tensor<2x3xi64>) {
  // expected-error @below {{expected result of shape [2, 3, 4] but found [2, 4]}}
  %0 = nd.take %t[%i] : tensor<5x4xf32>, tensor<2x3xi64> -> tensor<2x4xf32>
  return
}

// -----

func.func @take_of_scalar(%t: tensor<f32>, %i: tensor<2xi64>) {
  // expected-error @below {{expected table of rank 1 or more (rows first) but found rank 0}}
  %0 = nd.take %t[%i] : tensor<f32>, tensor<2xi64> -> tensor<2xf32>
  return
}

// -----

func.func @take_padding(%t: tensor<5xf32>, %i: tensor<2xi64>) {
  // expected-error @below {{expected padding_idx in [0, 5) but found 5}}
  %0 = nd.take %t[%i] {padding_idx = 5} : tensor<5xf32>, tensor<2xi64> -> tensor<2xf32>
  return
}

// -----

func.func @take_float_indices(%t: tensor<5xf32>, %i: tensor<2xf32>) {
  // expected-error @below {{operand #1 must be statically shaped tensor of signless integer values, but got 'tensor<2xf32>'}}
  %0 = nd.take %t[%i] : tensor<5xf32>, tensor<2xf32> -> tensor<2xf32>
  return
}

// -----

func.func @scatter_updates(%i: tensor<3xi64>, %u: tensor<3x5xf32>) {
  // expected-error @below {{expected updates of shape [3, 4] but found [3, 5]}}
  %0 = nd.scatter_add %i, %u : tensor<3xi64>, tensor<3x5xf32> -> tensor<7x4xf32>
  return
}

// -----

func.func @scatter_init(%i: tensor<3xi64>, %u: tensor<3xf32>, %x: tensor<6xf32>) {
  // expected-error @below {{expected init of the shape of result, [7], but found [6]}}
  %0 = nd.scatter_add %i, %u init %x : tensor<6xf32> : tensor<3xi64>, tensor<3xf32> -> tensor<7xf32>
  return
}

// -----

func.func @scatter_element_types(%i: tensor<3xi64>, %u: tensor<3xf64>) {
  // expected-error @below {{expected updates of element type 'f32' but found 'f64'}}
  %0 = nd.scatter_add %i, %u : tensor<3xi64>, tensor<3xf64> -> tensor<7xf32>
  return
}

// -----

func.func @take_along_sizes(%x: tensor<2x5xf32>, %i: tensor<1x3xi64>) {
  // expected-error @below {{expected indices of shape [2, 3] but found [1, 3]}}
  %0 = nd.take_along %x[%i] dim = 1 : tensor<2x5xf32>, tensor<1x3xi64> -> tensor<1x3xf32>
  return
}

// -----

func.func @take_along_rank(%x: tensor<2x5xf32>, %i: tensor<2xi64>) {
  // expected-error @below {{expected indices of rank 2 (that of input) but found rank 1}}
  %0 = nd.take_along %x[%i] dim = 1 : tensor<2x5xf32>, tensor<2xi64> -> tensor<2xf32>
  return
}

// -----

func.func @take_along_dim(%x: tensor<2x5xf32>, %i: tensor<2x3xi64>) {
  // expected-error @below {{expected dim in [0, 2) but found -1}}
  %0 = nd.take_along %x[%i] dim = -1 : tensor<2x5xf32>, tensor<2x3xi64> -> tensor<2x3xf32>
  return
}

// -----

func.func @take_along_result(%x: tensor<2x5xf32>, %i: tensor<2x3xi64>) {
  // expected-error @below {{expected result of shape [2, 3] but found [2, 5]}}
  %0 = nd.take_along %x[%i] dim = 1 : tensor<2x5xf32>, tensor<2x3xi64> -> tensor<2x5xf32>
  return
}

// -----

func.func @scatter_along_updates(%i: tensor<2x3xi64>, %u: tensor<2x4xf32>) {
  // expected-error @below {{expected updates of shape [2, 3] but found [2, 4]}}
  %0 = nd.scatter_add_along %i, %u dim = 1 : tensor<2x3xi64>, tensor<2x4xf32> -> tensor<2x5xf32>
  return
}

// -----

func.func @copies_groups(%x: tensor<12x5xf32>) {
  // expected-error @below {{expected groups in [-1, 1), by dimension 0 of result, but found 1}}
  %0 = nd.sum_copies %x dim = 0 unit = 2 units = 2 groups = [0, -1, 0, 0, -1, 1] : tensor<12x5xf32> -> tensor<1x4x5xf32>
  return
}

// -----

func.func @copies_units(%x: tensor<12x5xf32>) {
  // expected-error @below {{expected groups of a number of shards with 4 units of 1 elements each but found 6 groups}}
  %0 = nd.sum_copies %x dim = 0 unit = 1 units = 4 groups = [0, -1, 0, 0, -1, 0] : tensor<12x5xf32> -> tensor<1x4x5xf32>
  return
}

// -----

func.func @copies_shards(%x: tensor<8x5xf32>) {
  // expected-error @below {{expected 3 shards of 2 units of 2 elements in dimension 0 of input, and a shard in dimension 1 of result, but found}}
  %0 = nd.sum_copies %x dim = 0 unit = 2 units = 2 groups = [0, -1, 0, 0, -1, 0] : tensor<8x5xf32> -> tensor<1x4x5xf32>
  return
}

// -----

func.func @copies_result(%x: tensor<1x4x5xf32>) {
  // expected-error @below {{expected result of shape [12, 5] but found [12, 6]}}
  %0 = nd.make_copies %x dim = 0 unit = 2 units = 2 groups = [0, -1, 0, 0, -1, 0] : tensor<1x4x5xf32> -> tensor<12x6xf32>
  return
}

// -----

func.func @copies_rank(%x: tensor<12x5xf32>) {
  // expected-error @below {{expected result of rank 3}}
  %0 = nd.sum_copies %x dim = 0 unit = 2 units = 2 groups = [0, -1, 0, 0, -1, 0] : tensor<12x5xf32> -> tensor<4x5xf32>
  return
}
