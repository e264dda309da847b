// RUN: nd-opt %s -nd-annotate=shard=tp3 | FileCheck %s
// RUN: nd-opt %s -nd-annotate=shard=fsdp2,tp3 | FileCheck %s --check-prefix=STORED
// RUN: nd-opt %s -nd-annotate=shard=fsdp2,tp3 -nd-propagate-sharding -nd-insert-reshards -nd-verify-sharding -nd-partition -nd-verify-sharding | FileCheck %s --check-prefix=RANK
// RUN: nd-opt %s -nd-annotate=shard=tp2 | FileCheck %s --check-prefix=EVEN

// 6 query heads read 2 kv heads of 4 rows: ranks of tp3 use the first, both, the second, so that each has two slots.
// CHECK-LABEL: func.func @step
// CHECK-SAME: tensor<24x5xf32> {nd.copies = {dim = 0 : i64, table = {{\[\[}}0, -1], [0, 1], [-1, 1]], unit = 4 : i64}, nd.global_shape = array<i64: 8, 5>
// CHECK: nd.attention {{.*}} {kv_map = array<i64: 0, 0, 2, 3, 5, 5>}
// The heads' gradient is summed by heads; the norm reads the sum, the update copies of it.
// CHECK: %[[GRAD:.*]] = nd.dot_general %{{.*}} -> tensor<24x5xf32>
// CHECK: %[[SUM:.*]] = nd.sum_copies %[[GRAD]] dim = 0 unit = 4 units = 1 groups = [0, -1, 0, 1, -1, 1] : tensor<24x5xf32> -> tensor<2x4x5xf32>
// CHECK: %[[SQUARE:.*]] = arith.mulf %[[SUM]], %[[SUM]] : tensor<2x4x5xf32>
// CHECK: nd.reduce sum %[[SQUARE]] dims = [0, 1, 2] : tensor<2x4x5xf32> -> tensor<f32>
// CHECK: %[[COPIES:.*]] = nd.make_copies %[[SUM]] dim = 0 unit = 4 units = 1 groups = [0, -1, 0, 1, -1, 1] : tensor<2x4x5xf32> -> tensor<24x5xf32>
// CHECK: nd.sgd {{.*}} grad %[[COPIES]]

// fsdp cuts a rank's 8 rows into slots: slots are summed with slots.
// STORED: nd.copies = {dim = 0 : i64, table = {{\[\[}}0], [-1], [0], [1], [-1], [1]], unit = 4 : i64}
// STORED: nd.sum_copies %{{.*}} dim = 0 unit = 4 units = 2 groups = [0, -1, 0, 0, -1, 0] : tensor<24x5xf32> -> tensor<1x8x5xf32>

// RANK: %[[SHARD:.*]] = nd.reduce_scatter sum %{{.*}} over @mesh ["fsdp"] dims = [0]
// RANK: %[[PART:.*]] = nd.sum_copies %[[SHARD]] dim = 0 unit = 4 units = 2 groups = [0, -1, 0, 0, -1, 0] {shard_axes = ["tp"], unit_axes = ["fsdp"]} : tensor<4x5xf32> -> tensor<1x4x5xf32>
// RANK: nd.all_reduce sum %[[PART]] over @mesh ["tp"]

// EVEN-NOT: nd.copies
// EVEN-NOT: kv_map
module attributes {nd.model = {batch = 2 : i64}} {
  func.func @step(%q: tensor<2x6x3x4xf32> {nd.kind = "input", nd.name = "q"},
                  %x: tensor<2x3x5xf32> {nd.kind = "input", nd.name = "x"},
                  %w: tensor<8x5xf32> {nd.kind = "weight", nd.name = "w"},
                  %lr: tensor<f32> {nd.kind = "scalar", nd.name = "lr"})
      -> (tensor<f32> {nd.kind = "metric", nd.name = "grad_norm"}, tensor<8x5xf32> {nd.kind = "weight", nd.name = "w"}) {
    %0 = nd.dot_general %x, %w contract = [2] x [1] : tensor<2x3x5xf32>, tensor<8x5xf32> -> tensor<2x3x8xf32>
    %1 = nd.reshape %0 : tensor<2x3x8xf32> -> tensor<2x3x2x4xf32>
    %k = nd.transpose %1 permutation = [0, 2, 1, 3] : tensor<2x3x2x4xf32> -> tensor<2x2x3x4xf32>
    %o, %l = nd.attention %q, %k, %k scale = 1.0 causal : tensor<2x6x3x4xf32>, tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32> -> tensor<2x6x3x4xf32>, tensor<2x6x3xf32>
    %d:3 = nd.attention_grad %q, %k, %k result(%o, %l, %o) scale = 1.0 causal
        : tensor<2x6x3x4xf32>, tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32>, tensor<2x6x3x4xf32>, tensor<2x6x3xf32>, tensor<2x6x3x4xf32> -> tensor<2x6x3x4xf32>, tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32>
    %2 = arith.addf %d#1, %d#2 : tensor<2x2x3x4xf32>
    %3 = nd.transpose %2 permutation = [0, 2, 1, 3] : tensor<2x2x3x4xf32> -> tensor<2x3x2x4xf32>
    %4 = nd.reshape %3 : tensor<2x3x2x4xf32> -> tensor<2x3x8xf32>
    %g = nd.dot_general %4, %x contract = [0, 1] x [0, 1] : tensor<2x3x8xf32>, tensor<2x3x5xf32> -> tensor<8x5xf32>
    %5 = arith.mulf %g, %g : tensor<8x5xf32>
    %6 = nd.reduce sum %5 dims = [0, 1] : tensor<8x5xf32> -> tensor<f32>
    %one = arith.constant dense<1.0> : tensor<f32>
    %true = arith.constant dense<true> : tensor<i1>
    %new = nd.sgd %w grad %g scalars %lr, %one, %true {momentum = 0.0 : f64, weight_decay = 0.0 : f64}
        : tensor<8x5xf32>, tensor<8x5xf32>, tensor<f32>, tensor<i1>
    return %6, %new : tensor<f32>, tensor<8x5xf32>
  }
}
