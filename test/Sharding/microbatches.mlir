// RUN: nd-opt %s --shard=dp2,fsdp2 --microbatches=3 --optimizer=sgd --clip=0 | FileCheck %s

// Ranks share the batch of each microbatch. Gradients are scattered over fsdp with every microbatch, into sums of shards,
// which are reduced over dp once.
// CHECK: func.func @step(%[[X:[^:]*]]: tensor<3x1x8xf32> {{.*}}nd.sharding = #nd.sharding<@mesh, [{}, {"dp", "fsdp"}, {}]>
// CHECK: nd.microbatch %[[X]] : tensor<3x1x8xf32> -> tensor<1x8xf32>
// CHECK: %[[D:.*]] = nd.dot_general {{.*}} -> tensor<8x8xf32>
// CHECK-NEXT: %[[SHARD:.*]] = nd.reduce_scatter sum %[[D]] {{.*}}["fsdp"]{{.*}} in every microbatch
// CHECK: %[[SUM:.*]] = nd.accumulate %[[SHARD]] count = 3 : tensor<4x8xf32>
// CHECK: nd.all_reduce sum %[[SUM]] over @mesh ["dp"]
func.func @forward(%x: tensor<4x8xf32> {nd.kind = "input", nd.name = "x"}, %w: tensor<8x8xf32> {nd.kind = "weight", nd.name = "w"})
    -> (tensor<f32> {nd.kind = "loss_sum"}, tensor<i32> {nd.kind = "loss_count"}) {
  %count = arith.constant dense<4> : tensor<i32>
  %0 = nd.dot_general %x, %w contract = [1] x [0] : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  %1 = arith.mulf %0, %x : tensor<4x8xf32>
  %2 = nd.reduce sum %1 dims = [0, 1] : tensor<4x8xf32> -> tensor<f32>
  return %2, %count : tensor<f32>, tensor<i32>
}
