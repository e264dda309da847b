// RUN: nd-opt %s --forward-only --shard=dp2 | FileCheck %s

// With one sequence a rank, a local reshape does not tell whether batch or sequence is sharded: both are possible.
// CHECK: nd.attention {{.*}} : tensor<1x4x8x8xf32>
module attributes {nd.model = {batch = 2 : i64}} {
  func.func @forward(%x: tensor<2x8x32xf32> {nd.kind = "input", nd.name = "x"}) -> (tensor<2x4x8x8xf32> {nd.kind = "output", nd.name = "y"}) {
    %0 = nd.reshape %x : tensor<2x8x32xf32> -> tensor<2x8x4x8xf32>
    %1 = nd.transpose %0 permutation = [0, 2, 1, 3] : tensor<2x8x4x8xf32> -> tensor<2x4x8x8xf32>
    %2, %lse = nd.attention %1, %1, %1 scale = 1.0 causal : tensor<2x4x8x8xf32>, tensor<2x4x8x8xf32>, tensor<2x4x8x8xf32> -> tensor<2x4x8x8xf32>, tensor<2x4x8xf32>
    return %2 : tensor<2x4x8x8xf32>
  }
}
