// RUN: nd-opt %s | nd-opt | FileCheck %s

!x = tensor<2x4x8x4xbf16>
!wide = tensor<2x4x8x4xf32>
!lse = tensor<2x4x8xf32>
// CHECK-LABEL: func @step
func.func @step(%q: !x, %k: !x, %d: tensor<2x16xi64>, %o: !wide, %l: !lse) {
  // CHECK: nd.attention %{{.*}}, %{{.*}}, %{{.*}} documents(%{{.*}} : tensor<2x16xi64>) carry(%{{.*}}, %{{.*}} : tensor<2x4x8x4xf32>, tensor<2x4x8xf32>) scale = 1.000000e+00 causal
  // CHECK-SAME: {key_shards = 2 : i64, order = array<i64: 0, 3, 1, 2>, ring_step = 1 : i64, seq_axes = ["cp"], valid = 13 : i64}
  %0:2 = nd.attention %q, %k, %k documents(%d : tensor<2x16xi64>) carry(%o, %l : !wide, !lse) scale = 1.0 causal
      {order = array<i64: 0, 3, 1, 2>, valid = 13 : i64, seq_axes = ["cp"], key_shards = 2 : i64, ring_step = 1 : i64} : !x, !x, !x -> !x, !lse
  // CHECK: nd.attention_grad {{.*}} {cp_mode = "gather", head_axes = ["tp"], kv_map = array<i64: 0, 0, 1, 1, 4, 4, 5, -1>, seq_axes = ["cp"]}
  %1:3 = nd.attention_grad %q, %k, %k result(%q, %l, %q) scale = 1.0
      {cp_mode = "gather", kv_map = array<i64: 0, 0, 1, 1, 4, 4, 5, -1>, head_axes = ["tp"], seq_axes = ["cp"]} : !x, !x, !x, !x, !lse, !x -> !x, !wide, !wide
  return
}
