// RUN: nd-opt %s -nd-expand-ring-attention -split-input-file | FileCheck %s

// Forward merges what it has seen; the hop for a step stands before the attention of the step before.
nd.mesh @mesh axes [#nd.axis<"dp" = 2, replicate>, #nd.axis<"cp" = 3, context>]
!x = tensor<2x4x8x4xbf16>
!lse = tensor<2x4x8xf32>
// CHECK-LABEL: func @forward(
// CHECK-SAME: %[[Q:.*]]: tensor<2x4x8x4xbf16>, %[[K:.*]]: tensor<2x4x8x4xbf16>, %[[V:.*]]: tensor<2x4x8x4xbf16>
func.func @forward(%q: !x, %k: !x, %v: !x) -> (!x, !lse) {
  // CHECK-DAG: %[[K1:.*]] = nd.permute %[[K]] over @mesh ["cp"] sources = [2, 0, 1] {{.*}}instance = 1 name = "keys"
  // CHECK-DAG: %[[V1:.*]] = nd.permute %[[V]] over @mesh ["cp"] sources = [2, 0, 1] {{.*}}instance = 2 name = "values"
  // CHECK: %[[O0:.*]], %[[L0:.*]] = nd.attention %[[Q]], %[[K]], %[[V]] scale = {{.*}} causal {key_shards = 3 : i64, seq_axes = ["cp"]} : {{.*}} -> tensor<2x4x8x4xf32>, tensor<2x4x8xf32>
  // CHECK-DAG: %[[K2:.*]] = nd.permute %[[K1]]
  // CHECK-DAG: %[[V2:.*]] = nd.permute %[[V1]]
  // CHECK: %[[O1:.*]], %[[L1:.*]] = nd.attention %[[Q]], %[[K1]], %[[V1]] carry(%[[O0]], %[[L0]] : tensor<2x4x8x4xf32>, tensor<2x4x8xf32>) {{.*}}ring_step = 1 : i64{{.*}} -> tensor<2x4x8x4xf32>
  // CHECK: %[[O2:.*]], %[[L2:.*]] = nd.attention %[[Q]], %[[K2]], %[[V2]] carry(%[[O1]], %[[L1]] : {{.*}}ring_step = 2 : i64{{.*}} -> tensor<2x4x8x4xbf16>
  // CHECK: return %[[O2]], %[[L2]]
  %o, %lse = nd.attention %q, %k, %v scale = 0.5 causal {cp_mode = "ring", seq_axes = ["cp"], key_shards = 3 : i64} : !x, !x, !x -> !x, !lse
  return %o, %lse : !x, !lse
}

// -----

// Backward starts with the neighbour's keys and ends with the rank's own, to which their gradients have travelled.
nd.mesh @mesh axes [#nd.axis<"cp" = 3, context>]
!x = tensor<2x4x8x4xf32>
!lse = tensor<2x4x8xf32>
// CHECK-LABEL: func @backward(
// CHECK-SAME: %[[Q:.*]]: tensor<2x4x8x4xf32>, %[[K:.*]]: tensor<2x4x8x4xf32>, %[[V:.*]]: tensor<2x4x8x4xf32>, %[[O:.*]]: tensor<2x4x8x4xf32>, %[[L:.*]]: tensor<2x4x8xf32>)
func.func @backward(%q: !x, %k: !x, %v: !x, %o: !x, %l: !lse) -> (!x, !x, !x) {
  // CHECK-DAG: %[[K1:.*]] = nd.permute %[[K]] over @mesh ["cp"] sources = [2, 0, 1]
  // CHECK-DAG: %[[V1:.*]] = nd.permute %[[V]]
  // CHECK-DAG: %[[K2:.*]] = nd.permute %[[K1]]
  // CHECK-DAG: %[[V2:.*]] = nd.permute %[[V1]]
  // CHECK: %[[DQ1:.*]], %[[DK1:.*]], %[[DV1:.*]] = nd.attention_grad %[[Q]], %[[K1]], %[[V1]] result(%[[O]], %[[L]], %[[O]]) {{.*}}ring_step = 1 : i64
  // CHECK: %[[DK1M:.*]] = nd.permute %[[DK1]] over @mesh ["cp"] sources = [2, 0, 1] {{.*}}name = "gradients of keys"
  // CHECK: %[[DV1M:.*]] = nd.permute %[[DV1]] {{.*}}name = "gradients of values"
  // CHECK: %[[DQ2:.*]], %[[DK2:.*]], %[[DV2:.*]] = nd.attention_grad %[[Q]], %[[K2]], %[[V2]] {{.*}}ring_step = 2 : i64
  // CHECK-DAG: %[[DQ12:.*]] = arith.addf %[[DQ1]], %[[DQ2]]
  // CHECK-DAG: %[[DK12:.*]] = arith.addf %[[DK1M]], %[[DK2]]
  // CHECK-DAG: %[[DV12:.*]] = arith.addf %[[DV1M]], %[[DV2]]
  // CHECK-DAG: %[[DK12M:.*]] = nd.permute %[[DK12]]
  // CHECK-DAG: %[[DV12M:.*]] = nd.permute %[[DV12]]
  // CHECK: %[[DQ0:.*]], %[[DK0:.*]], %[[DV0:.*]] = nd.attention_grad %[[Q]], %[[K]], %[[V]] result(%[[O]], %[[L]], %[[O]]) scale = {{.*}} causal {key_shards = 3 : i64, seq_axes = ["cp"]}
  // CHECK-DAG: %[[DQ:.*]] = arith.addf %[[DQ12]], %[[DQ0]]
  // CHECK-DAG: %[[DK:.*]] = arith.addf %[[DK12M]], %[[DK0]]
  // CHECK-DAG: %[[DV:.*]] = arith.addf %[[DV12M]], %[[DV0]]
  // CHECK: return %[[DQ]], %[[DK]], %[[DV]]
  %g:3 = nd.attention_grad %q, %k, %v result(%o, %l, %o) scale = 0.5 causal {cp_mode = "ring", seq_axes = ["cp"], key_shards = 3 : i64}
      : !x, !x, !x, !x, !lse, !x -> !x, !x, !x
  return %g#0, %g#1, %g#2 : !x, !x, !x
}

// -----

// A window of one shard: of four, a rank needs its own and the one before. Gradients go home in one hop over three ranks.
nd.mesh @mesh axes [#nd.axis<"cp" = 4, context>]
!x = tensor<1x1x8x4xf32>
!lse = tensor<1x1x8xf32>
// CHECK-LABEL: func @window(
func.func @window(%q: !x, %k: !x, %o: !x, %l: !lse) -> (!x, !x, !x, !x, !lse) {
  // CHECK-COUNT-2: nd.permute {{.*}} sources = [3, 0, 1, 2]
  // CHECK-NOT: nd.permute
  // CHECK: nd.attention %
  // CHECK: nd.attention {{.*}} carry
  %r, %lse = nd.attention %q, %k, %k scale = 0.5 causal {window = 8 : i64, cp_mode = "ring", seq_axes = ["cp"], key_shards = 4 : i64} : !x, !x, !x -> !x, !lse
  // CHECK-COUNT-2: nd.permute {{.*}} sources = [3, 0, 1, 2]
  // CHECK: nd.attention_grad {{.*}} ring_step = 1 : i64
  // CHECK-COUNT-2: nd.permute {{.*}} sources = [1, 2, 3, 0]
  // CHECK: nd.attention_grad
  // CHECK-NOT: nd.permute
  %g:3 = nd.attention_grad %q, %k, %k result(%o, %l, %o) scale = 0.5 causal {window = 8 : i64, cp_mode = "ring", seq_axes = ["cp"], key_shards = 4 : i64}
      : !x, !x, !x, !x, !lse, !x -> !x, !x, !x
  return %g#0, %g#1, %g#2, %r, %lse : !x, !x, !x, !x, !lse
}
