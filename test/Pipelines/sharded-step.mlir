// RUN: nd-opt --shard=dp3 %s | FileCheck %s
// RUN: nd-opt --shard=dp1 %s | FileCheck %s --check-prefix=ONE
// RUN: nd-opt --forward-only --ranks=2 %s | FileCheck %s --check-prefix=FORWARD

// A whole model on three ranks: the loss, the number of tokens before backward, and the gradient of the tied table, whose two parts
// are added before they are reduced. Nothing else moves.
// CHECK: nd.mesh @mesh axes [#nd.axis<"dp" = 3, replicate>]
// CHECK-LABEL: func.func @step
// CHECK-SAME: tensor<2x3xi64> {nd.bound = 7 : i64, nd.global_shape = array<i64: 6, 3>
// CHECK-NOT: nd.all_
// CHECK: nd.all_reduce sum %{{.*}} names = ["loss"]
// CHECK-NOT: nd.all_
// CHECK: nd.all_reduce sum %{{.*}} names = ["tokens"]
// CHECK-NOT: nd.all_
// CHECK: nd.softmax_cross_entropy_grad
// CHECK: %[[PARTIAL:.*]] = nd.scatter_add %{{.*}} init
// CHECK: %[[G:.*]] = nd.all_reduce sum %[[PARTIAL]] over @mesh ["dp"] {{.*}} names = ["gradient of w"]
// CHECK: nd.adamw %{{.*}} grad %[[G]]
// CHECK-NOT: nd.all_

// ONE: nd.mesh @mesh axes [#nd.axis<"dp" = 1, replicate>]
// ONE-NOT: nd.all_

// The logits stay where they are computed.
// FORWARD: -> (tensor<3x3x7xf32> {nd.global_shape = array<i64: 6, 3, 7>, nd.kind = "logits", nd.sharding = #nd.sharding<@mesh, [{"dp"}, {}, {}]>})
// FORWARD-NOT: nd.all_
module attributes {nd.model = {ignore_index = -100 : i64}} {
  func.func @forward(%ids: tensor<6x3xi64> {nd.bound = 7 : i64, nd.kind = "input", nd.name = "input_ids"}, %w: tensor<7x4xf32> {nd.kind = "weight", nd.name = "w"})
      -> (tensor<6x3x7xf32> {nd.kind = "logits"}) {
    %0 = nd.take %w[%ids] : tensor<7x4xf32>, tensor<6x3xi64> -> tensor<6x3x4xf32>
    %1 = nd.dot_general %0, %w contract = [2] x [1] : tensor<6x3x4xf32>, tensor<7x4xf32> -> tensor<6x3x7xf32>
    return %1 : tensor<6x3x7xf32>
  }
}
