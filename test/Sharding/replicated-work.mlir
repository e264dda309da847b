// RUN: nd-opt %s -split-input-file -nd-annotate=shard=tp2 -nd-propagate-sharding -verify-diagnostics | FileCheck %s

// A third of the work: `a` makes what nothing contracts, `up` and `down` are a pair.
// CHECK: notes = ["all 2 ranks of tp compute 33.3% of the products alike: the product with weight 'a' has no dimension that the plan shards over tp; --annotate can place it"]
module attributes {nd.model = {batch = 2 : i64}} {
  func.func @step(%x: tensor<2x8xf32> {nd.kind = "input", nd.name = "x"}, %a: tensor<8x8xf32> {nd.kind = "weight", nd.name = "a"},
                  %up: tensor<8x8xf32> {nd.kind = "weight", nd.name = "up"}, %down: tensor<8x8xf32> {nd.kind = "weight", nd.name = "down"})
      -> (tensor<2x8xf32> {nd.kind = "output", nd.name = "y"}) {
    // expected-warning @+1 {{all 2 ranks of tp compute 33.3% of the products alike: the product with weight 'a'}}
    %0 = nd.dot_general %x, %a contract = [1] x [0] : tensor<2x8xf32>, tensor<8x8xf32> -> tensor<2x8xf32>
    %1 = arith.addf %0, %x : tensor<2x8xf32>
    %2 = nd.dot_general %1, %up contract = [1] x [0] : tensor<2x8xf32>, tensor<8x8xf32> -> tensor<2x8xf32>
    %3 = math.tanh %2 : tensor<2x8xf32>
    %4 = nd.dot_general %3, %down contract = [1] x [0] : tensor<2x8xf32>, tensor<8x8xf32> -> tensor<2x8xf32>
    %5 = arith.addf %4, %1 : tensor<2x8xf32>
    return %5 : tensor<2x8xf32>
  }
}

// -----

// CHECK-NOT: notes
module attributes {nd.model = {batch = 2 : i64}} {
  func.func @step(%x: tensor<2x8xf32> {nd.kind = "input", nd.name = "x"},
                  %up: tensor<8x8xf32> {nd.kind = "weight", nd.name = "up"}, %down: tensor<8x8xf32> {nd.kind = "weight", nd.name = "down"})
      -> (tensor<2x8xf32> {nd.kind = "output", nd.name = "y"}) {
    %2 = nd.dot_general %x, %up contract = [1] x [0] : tensor<2x8xf32>, tensor<8x8xf32> -> tensor<2x8xf32>
    %3 = math.tanh %2 : tensor<2x8xf32>
    %4 = nd.dot_general %3, %down contract = [1] x [0] : tensor<2x8xf32>, tensor<8x8xf32> -> tensor<2x8xf32>
    return %4 : tensor<2x8xf32>
  }
}
