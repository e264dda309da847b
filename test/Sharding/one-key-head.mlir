// RUN: nd-opt %s -nd-propagate-sharding -nd-insert-reshards -nd-verify-sharding | FileCheck %s

// One key head for the query heads of two ranks of tp, a sequence on two ranks of cp, gathered. The gradient of the keys is scattered
// over cp as f32 and stays partial over tp, though it is rounded: it goes into the gradient of the weight, and into a sum
// that is reduced over tp in any case.
nd.mesh @mesh axes [#nd.axis<"cp" = 2, context>, #nd.axis<"tp" = 2, tensor>]
// CHECK-LABEL: func.func @step
func.func @step(
    %x: tensor<2x8x6xbf16> {nd.sharding = #nd.sharding<@mesh, [{}, {"cp"}, {}]>},
    %q: tensor<2x4x8x2xbf16> {nd.sharding = #nd.sharding<@mesh, [{}, {"tp"}, {"cp"}, {}]>},
    %k: tensor<2x1x8x2xbf16> {nd.sharding = #nd.sharding<@mesh, [{}, {}, {"cp"}, {}]>},
    %lse: tensor<2x4x8xf32> {nd.sharding = #nd.sharding<@mesh, [{}, {"tp"}, {"cp"}]>},
    %w: tensor<2x6xbf16> {nd.sharding = #nd.sharding<@mesh, [{}, {}]>},
    %wq: tensor<8x6xbf16> {nd.sharding = #nd.sharding<@mesh, [{"tp"}, {}]>})
    -> (tensor<2x8x6xbf16> {nd.sharding = #nd.sharding<@mesh, [{}, {"cp"}, {}]>},
        tensor<2x6xf32> {nd.kind = "gradient", nd.name = "w", nd.sharding = #nd.sharding<@mesh, [{}, {}]>}) {
  // CHECK: %{{.*}}, %[[DK:.*]], %{{.*}} = nd.attention_grad
  // CHECK-SAME: tensor<2x1x8x2xf32, #nd.sharding<@mesh, [{}, {}, {}, {}], unreduced = sum {"cp", "tp"}>>
  // CHECK-NEXT: %[[OWN:.*]] = nd.reshard %[[DK]] {{.*}} along cp" {{.*}} -> tensor<2x1x8x2xf32, #nd.sharding<@mesh, [{}, {}, {"cp"}, {}], unreduced = sum {"tp"}>>
  %g:3 = nd.attention_grad %q, %k, %k result(%q, %lse, %q) scale = 0.5 causal {cp_mode = "gather"} : tensor<2x4x8x2xbf16>, tensor<2x1x8x2xbf16>, tensor<2x1x8x2xbf16>, tensor<2x4x8x2xbf16>, tensor<2x4x8xf32>, tensor<2x4x8x2xbf16> -> tensor<2x4x8x2xbf16>, tensor<2x1x8x2xf32>, tensor<2x1x8x2xf32>
  // CHECK-NEXT: arith.truncf %[[OWN]] : {{.*}} to tensor<2x1x8x2xbf16, {{.*}}, unreduced = sum {"tp"}>>
  %0 = arith.truncf %g#1 : tensor<2x1x8x2xf32> to tensor<2x1x8x2xbf16>
  %1 = nd.reshape %0 : tensor<2x1x8x2xbf16> -> tensor<2x8x2xbf16>
  %2 = nd.transpose %g#0 permutation = [0, 2, 1, 3] : tensor<2x4x8x2xbf16> -> tensor<2x8x4x2xbf16>
  %3 = nd.reshape %2 : tensor<2x8x4x2xbf16> -> tensor<2x8x8xbf16>
  // CHECK: %[[XQ:.*]] = nd.dot_general {{.*}}, unreduced = sum {"tp"}>>
  %4 = nd.dot_general %3, %wq contract = [2] x [0] : tensor<2x8x8xbf16>, tensor<8x6xbf16> -> tensor<2x8x6xbf16>
  // CHECK-NEXT: %[[XK:.*]] = nd.dot_general {{.*}}, unreduced = sum {"tp"}>>
  %5 = nd.dot_general %1, %w contract = [2] x [0] : tensor<2x8x2xbf16>, tensor<2x6xbf16> -> tensor<2x8x6xbf16>
  // CHECK-NEXT: %[[SUM:.*]] = arith.addf %[[XQ]], %[[XK]] : {{.*}}, unreduced = sum {"tp"}>>
  // CHECK-NEXT: nd.reshard %[[SUM]]
  %6 = arith.addf %4, %5 : tensor<2x8x6xbf16>
  // CHECK-NEXT: %[[DW:.*]] = nd.dot_general {{.*}}unreduced = sum {"cp", "tp"}>>
  // CHECK-NEXT: nd.reshard %[[DW]]
  // CHECK-NOT: nd.reshard
  %7 = nd.dot_general %1, %x contract = [0, 1] x [0, 1] : tensor<2x8x2xbf16>, tensor<2x8x6xbf16> -> tensor<2x6xf32>
  return %6, %7 : tensor<2x8x6xbf16>, tensor<2x6xf32>
}
