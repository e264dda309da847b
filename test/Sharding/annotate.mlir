// RUN: nd-opt %s -nd-annotate=shard=dp2 | FileCheck %s
// RUN: nd-opt %s -nd-annotate=shard=dp1 | FileCheck %s --check-prefix=ONE
// RUN: nd-opt %s -nd-annotate="shard=tp1,dp*,fsdp1 ranks=4" | FileCheck %s --check-prefix=CANONICAL
// RUN: nd-opt %s -nd-annotate | FileCheck %s --check-prefix=EMPTY
// RUN: nd-opt %s -nd-annotate="shard=dp2 nodes=2" | FileCheck %s --check-prefix=NODES
// RUN: not nd-opt %s -nd-annotate="shard=dp2 nodes=3" 2>&1 | FileCheck %s --check-prefix=REFUSED

// The batch of every input that has it is sharded; an input without it (positions [1, S]), parameters, state and numbers are
// replicated; an annotation that is there stays; a result without a plan stays open.
// CHECK: nd.mesh @mesh axes [#nd.axis<"dp" = 2, replicate>]{{$}}
// CHECK-LABEL: func.func @step
// CHECK-SAME: nd.name = "ids", nd.sharding = #nd.sharding<@mesh, [{"dp"}, {}]>
// CHECK-SAME: nd.name = "positions", nd.sharding = #nd.sharding<@mesh, [{}, {}]>
// CHECK-SAME: nd.name = "given", nd.sharding = #nd.sharding<@mesh, [{}, {"dp"}]>
// CHECK-SAME: nd.name = "w", nd.sharding = #nd.sharding<@mesh, [{}]>
// CHECK-SAME: nd.name = "lr", nd.sharding = #nd.sharding<@mesh, []>
// CHECK-SAME: -> (tensor<f32> {nd.kind = "metric", nd.name = "loss", nd.sharding = #nd.sharding<@mesh, []>},
// CHECK-SAME: tensor<8xf32> {nd.kind = "weight", nd.name = "w", nd.sharding = #nd.sharding<@mesh, [{}]>},
// CHECK-SAME: tensor<8xf32> {nd.kind = "gradient", nd.name = "w", nd.sharding = #nd.sharding<@mesh, [{}]>},
// CHECK-SAME: tensor<4x8xf32> {nd.kind = "output", nd.name = "out"})
// A constant is copied per use.
// CHECK-COUNT-2: arith.constant dense<2.000000e+00> : tensor<8xf32>
// CHECK: arith.mulf

// Axes of size 1 are named but shard nothing.
// ONE: nd.mesh @mesh axes [#nd.axis<"dp" = 1, replicate>]
// ONE-NOT: {"dp"}, {}

// CANONICAL: nd.mesh @mesh axes [#nd.axis<"dp" = 4, replicate>, #nd.axis<"fsdp" = 1, shard>, #nd.axis<"tp" = 1, tensor>]
// NODES: nd.mesh @mesh axes [#nd.axis<"dp" = 2, replicate>] nodes 2
// REFUSED: --nodes=3: 2 ranks do not divide over 3 nodes; give a divisor of 2
// EMPTY: nd.mesh @mesh axes [#nd.axis<"dp" = 1, replicate>]
module attributes {nd.model = {batch = 4 : i64}} {
  func.func @step(%ids: tensor<4x8xi64> {nd.kind = "input", nd.name = "ids"},
                  %positions: tensor<1x8xi64> {nd.kind = "input", nd.name = "positions"},
                  %given: tensor<4x8xf32> {nd.kind = "input", nd.name = "given", nd.sharding = #nd.sharding<@mesh, [{}, {"dp"}]>},
                  %w: tensor<8xf32> {nd.kind = "weight", nd.name = "w"},
                  %lr: tensor<f32> {nd.kind = "scalar", nd.name = "lr"})
      -> (tensor<f32> {nd.kind = "metric", nd.name = "loss"}, tensor<8xf32> {nd.kind = "weight", nd.name = "w"},
          tensor<8xf32> {nd.kind = "gradient", nd.name = "w"}, tensor<4x8xf32> {nd.kind = "output", nd.name = "out"}) {
    %c = arith.constant dense<2.0> : tensor<8xf32>
    %0 = arith.mulf %w, %c : tensor<8xf32>
    %1 = arith.addf %0, %c : tensor<8xf32>
    return %lr, %1, %0, %given : tensor<f32>, tensor<8xf32>, tensor<8xf32>, tensor<4x8xf32>
  }
}
