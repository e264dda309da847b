// RUN: nd-opt %s -nd-chunk-loss=tokens=4 | FileCheck %s
// RUN: nd-opt %s -nd-chunk-loss=tokens=10 | FileCheck %s --check-prefix=ROWS
// RUN: nd-opt %s -nd-chunk-loss=tokens=12 | FileCheck %s --check-prefix=WHOLE
// RUN: nd-opt %s -nd-chunk-loss | FileCheck %s --check-prefix=WHOLE

// 6 tokens a row are two chunks of 3: 4 do not divide them, and chunks are as even as can be. What lies between the
// operations of the region and depends on it (the loss) comes behind it.
// CHECK: module attributes {nd.loss_chunk = 4 : i64, nd.promises = {chunked_tokens = 12 : i64, chunked_width = 32 : i64}}
// CHECK-LABEL: @step
// CHECK-SAME: %[[X:.*]]: tensor<2x6x8xf32>, %[[W:.*]]: tensor<32x8xf32>, %[[L:.*]]: tensor<2x6xi64>
// CHECK: %[[ROW0:.*]] = nd.slice %[[X]] starts = [0, 0, 0] {{.*}}{nd.chunk = 0 : i64} : tensor<2x6x8xf32> -> tensor<1x6x8xf32>
// CHECK: %[[X0:.*]] = nd.slice %[[ROW0]] starts = [0, 0, 0] {{.*}} -> tensor<1x3x8xf32>
// CHECK: %[[LOGITS0:.*]] = nd.dot_general %[[X0]], %[[W]] {{.*}} -> tensor<1x3x32xf32>
// CHECK: nd.softmax_cross_entropy %[[LOGITS0]]
// CHECK: %[[GRAD0:.*]] = nd.softmax_cross_entropy_grad %[[LOGITS0]]
// CHECK: nd.dot_general %[[GRAD0]], %[[W]] {{.*}} -> tensor<1x3x8xf32>
// CHECK: %[[DW0:.*]] = nd.dot_general %[[GRAD0]], %[[X0]] {{.*}} -> tensor<32x8xf32>
// CHECK: %[[DW1:.*]] = nd.dot_general {{.*}} {nd.chunk = 1 : i64} {{.*}} -> tensor<32x8xf32>
// CHECK: arith.addf %[[DW0]], %[[DW1]] {nd.chunk = 1 : i64}
// CHECK: nd.slice %{{.*}} starts = [0, 3, 0]
// CHECK: nd.concat {{.*}} dim = 1 {nd.chunk = 4 : i64} : tensor<1x3xf32>, tensor<1x3xf32>
// CHECK: %[[LOSSES:.*]] = nd.concat {{.*}} dim = 0 {nd.chunk = 4 : i64}
// CHECK: nd.reduce sum %[[LOSSES]] dims = [0, 1]
// CHECK-NOT: tensor<2x6x32xf32>

// ROWS: nd.dot_general {{.*}} -> tensor<1x6x32xf32>
// ROWS-NOT: tensor<1x3x32xf32>

// WHOLE-NOT: nd.chunk
// WHOLE: nd.dot_general {{.*}} -> tensor<2x6x32xf32>
func.func @step(%x: tensor<2x6x8xf32>, %w: tensor<32x8xf32>, %labels: tensor<2x6xi64>, %g: tensor<2x6xf32>)
    -> (tensor<f32>, tensor<2x6x8xf32>, tensor<32x8xf32>) {
  %logits = nd.dot_general %x, %w contract = [2] x [1] : tensor<2x6x8xf32>, tensor<32x8xf32> -> tensor<2x6x32xf32>
  %losses, %lse = nd.softmax_cross_entropy %logits, %labels ignore = -100 : tensor<2x6x32xf32>, tensor<2x6xi64> -> tensor<2x6xf32>
  %loss = nd.reduce sum %losses dims = [0, 1] : tensor<2x6xf32> -> tensor<f32>
  %d = nd.softmax_cross_entropy_grad %logits, %labels, %lse, %g ignore = -100 : tensor<2x6x32xf32>, tensor<2x6xi64>, tensor<2x6xf32>
  %dx = nd.dot_general %d, %w contract = [2] x [0] : tensor<2x6x32xf32>, tensor<32x8xf32> -> tensor<2x6x8xf32>
  %dw = nd.dot_general %d, %x contract = [0, 1] x [0, 1] : tensor<2x6x32xf32>, tensor<2x6x8xf32> -> tensor<32x8xf32>
  return %loss, %dx, %dw : tensor<f32>, tensor<2x6x8xf32>, tensor<32x8xf32>
}
