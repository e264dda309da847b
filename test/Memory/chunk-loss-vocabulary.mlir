// RUN: nd-opt %s -nd-chunk-loss=tokens=4 | FileCheck %s

// Over a sharded vocabulary: what combines the ranks lies between two wide operations, runs per chunk, and is never the
// same collective twice.
nd.mesh @mesh axes [#nd.axis<"tp" = 2, tensor>]
// CHECK-LABEL: @step
// CHECK: %[[LOGITS:.*]] = nd.dot_general {{.*}} -> tensor<4x32xf32>
// CHECK: %[[MAX:.*]] = nd.reduce max %[[LOGITS]]
// CHECK: nd.all_reduce max %[[MAX]] over @mesh ["tp"] instance = 8 {{.*}}{nd.chunk = 0 : i64} : tensor<4xf32>
// CHECK: nd.all_reduce max %{{.*}} instance = 9 {{.*}}{nd.chunk = 1 : i64} : tensor<4xf32>
// CHECK: %[[SUM:.*]] = nd.concat
// CHECK: return %[[SUM]]
func.func @step(%x: tensor<8x8xf32>, %w: tensor<32x8xf32>) -> tensor<8xf32> {
  %logits = nd.dot_general %x, %w contract = [1] x [1] {nd.logits} : tensor<8x8xf32>, tensor<32x8xf32> -> tensor<8x32xf32>
  %max = nd.reduce max %logits dims = [1] : tensor<8x32xf32> -> tensor<8xf32>
  %all = nd.all_reduce max %max over @mesh ["tp"] instance = 7 names = ["max"] reason = "test" : tensor<8xf32>
  %same = nd.broadcast %all dims = [0] : tensor<8xf32> -> tensor<8x32xf32>
  %shifted = arith.subf %logits, %same : tensor<8x32xf32>
  %e = math.exp %shifted : tensor<8x32xf32>
  %sum = nd.reduce sum %e dims = [1] : tensor<8x32xf32> -> tensor<8xf32>
  return %sum : tensor<8xf32>
}
