// RUN: nd-opt %s -split-input-file -verify-diagnostics
func.func @gemm_sizes(%x: tensor<5x3xf32>, %w: tensor<4x3xf32>) {
  // expected-error @below {{expected equal contracted sizes but found 3 in lhs and 4 in rhs}}
  %0 = nd.gemm %x, %w : tensor<5x3xf32>, tensor<4x3xf32> -> tensor<5x3xf32>
  return
}

// -----

func.func @gemm_ranks(%x: tensor<5xf32>) {
  // expected-error @below {{expected lhs of rank 2 or 3 but found rank 1}}
  %0 = nd.gemm %x, %x : tensor<5xf32>, tensor<5xf32> -> tensor<5xf32>
  return
}

// -----

func.func @gemm_batches(%x: tensor<2x5x3xf32>, %w: tensor<1x3x4xf32>) {
  // expected-error @below {{expected equal batch sizes but found 2 in lhs and 1 in rhs}}
  %0 = nd.gemm %x, %w : tensor<2x5x3xf32>, tensor<1x3x4xf32> -> tensor<2x5x4xf32>
  return
}

// -----

func.func @gemm_bias(%x: tensor<5x3xf32>, %w: tensor<3x4xf32>, %b: tensor<5xf32>) {
  // expected-error @below {{expected bias of shape [4] but found [5]}}
  %0 = nd.gemm %x, %w bias(%b : tensor<5xf32>) : tensor<5x3xf32>, tensor<3x4xf32> -> tensor<5x4xf32>
  return
}

// -----

func.func @gemm_accumulator(%x: tensor<5x3xf32>, %w: tensor<3x4xf32>, %c: tensor<4x5xf32>) {
  // expected-error @below {{expected accumulator of the shape of result, [5, 4], but found [4, 5]}}
  %0 = nd.gemm %x, %w accumulate(%c : tensor<4x5xf32>) : tensor<5x3xf32>, tensor<3x4xf32> -> tensor<5x4xf32>
  return
}

// -----

func.func @kernel_arguments(%x: tensor<3xf32>) {
  // expected-error @below {{expected as many block arguments as operands, 1, but found 0}}
  %0 = nd.kernel(%x) : (tensor<3xf32>) -> tensor<3xf32> {
    %1 = arith.constant dense<0.0> : tensor<3xf32>
    nd.yield %1 : tensor<3xf32>
  }
  return
}

// -----

func.func @kernel_results(%x: tensor<3xf32>) {
  // expected-error @below {{expected the type of results in yielded values, 'tensor<4xf32>' at index 0, but found 'tensor<3xf32>'}}
  %0 = nd.kernel(%x) : (tensor<3xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<3xf32>):
    nd.yield %a : tensor<3xf32>
  }
  return
}
