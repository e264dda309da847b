// RUN: nd-opt %s -nd-chunk-loss=tokens=3 | FileCheck %s

// What counts tokens beside the vocabulary counts on from chunk to chunk, and from shard to shard: 6 of a rank's tokens are two
// chunks of 3.
// CHECK-LABEL: @step
// CHECK: %[[ALL0:.*]] = nd.iota dim = 0 {nd.chunk = 0 : i64, shard_axes = ["cp"]} : tensor<6xi64>
// CHECK: %[[OWN0:.*]] = nd.slice %[[ALL0]] starts = [0] {{.*}} -> tensor<3xi64>
// CHECK: nd.broadcast %[[OWN0]] dims = [1] {{.*}} : tensor<3xi64> -> tensor<1x3x32xi64>
// CHECK: %[[ALL1:.*]] = nd.iota dim = 0 {nd.chunk = 1 : i64, shard_axes = ["cp"]} : tensor<6xi64>
// CHECK: %[[OWN1:.*]] = nd.slice %[[ALL1]] starts = [3] {{.*}} -> tensor<3xi64>
// CHECK: nd.broadcast %[[OWN1]] dims = [1] {{.*}} : tensor<3xi64> -> tensor<1x3x32xi64>
nd.mesh @mesh axes [#nd.axis<"cp" = 2, context>]
func.func @step(%x: tensor<1x6x8xf32>, %w: tensor<32x8xf32>, %labels: tensor<1x6xi64>, %g: tensor<1x6xf32>)
    -> (tensor<1x6xf32>, tensor<32xf32>) {
  %logits = nd.dot_general %x, %w contract = [2] x [1] : tensor<1x6x8xf32>, tensor<32x8xf32> -> tensor<1x6x32xf32>
  %losses, %lse = nd.softmax_cross_entropy %logits, %labels ignore = -100 : tensor<1x6x32xf32>, tensor<1x6xi64> -> tensor<1x6xf32>
  %d = nd.softmax_cross_entropy_grad %logits, %labels, %lse, %g ignore = -100 : tensor<1x6x32xf32>, tensor<1x6xi64>, tensor<1x6xf32>
  %place = nd.iota dim = 1 {shard_axes = ["cp"]} : tensor<1x6x32xi64>
  %end = arith.constant dense<9> : tensor<1x6x32xi64>
  %real = arith.cmpi slt, %place, %end : tensor<1x6x32xi64>
  %zero = arith.constant dense<0.0> : tensor<1x6x32xf32>
  %masked = arith.select %real, %d, %zero : tensor<1x6x32xi1>, tensor<1x6x32xf32>
  %sum = nd.reduce sum %masked dims = [0, 1] : tensor<1x6x32xf32> -> tensor<32xf32>
  return %losses, %sum : tensor<1x6xf32>, tensor<32xf32>
}
