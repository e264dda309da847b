// RUN: nd-opt %s -nd-annotate=shard=tp4 | FileCheck %s

// Two kv heads on four ranks split the tensor axis; an attribute of the user that names the axis names both parts.
// CHECK: nd.mesh @mesh axes [#nd.axis<"tp.0" = 2, tensor>, #nd.axis<"tp.1" = 2, tensor>]
// CHECK: nd.name = "w", nd.sharding = #nd.sharding<@mesh, [{"tp.0", "tp.1"}, {}]>
module attributes {nd.model = {batch = 2 : i64}} {
  func.func @step(%q: tensor<2x4x8x4xf32> {nd.kind = "input", nd.name = "q"}, %k: tensor<2x2x8x4xf32> {nd.kind = "input", nd.name = "k"},
                  %wk: tensor<8x4xf32> {nd.kind = "weight", nd.name = "wk"},
                  %w: tensor<8x4xf32> {nd.kind = "weight", nd.name = "w", nd.sharding = #nd.sharding<@mesh, [{"tp"}, {}]>})
      -> (tensor<2x4x8x4xf32> {nd.kind = "output", nd.name = "y"}) {
    %h = nd.reshape %wk : tensor<8x4xf32> -> tensor<2x4x4xf32>
    %b = nd.broadcast %h dims = [1, 2, 3] : tensor<2x4x4xf32> -> tensor<2x2x4x4xf32>
    %v = nd.dot_general %k, %b batch = [0, 1] x [0, 1] contract = [3] x [2] : tensor<2x2x8x4xf32>, tensor<2x2x4x4xf32> -> tensor<2x2x8x4xf32>
    %g = nd.reshape %w : tensor<8x4xf32> -> tensor<2x4x4xf32>
    %y, %lse = nd.attention %q, %k, %v scale = 1.0 causal : tensor<2x4x8x4xf32>, tensor<2x2x8x4xf32>, tensor<2x2x8x4xf32> -> tensor<2x4x8x4xf32>, tensor<2x4x8xf32>
    return %y : tensor<2x4x8x4xf32>
  }
}
