// RUN: nd-opt %s | nd-opt | FileCheck %s
// RUN: nd-opt %s --mlir-print-op-generic | nd-opt | FileCheck %s

// CHECK-LABEL: func.func @take
func.func @take(%table: tensor<5x4xf32>, %i: tensor<2x3xi64>) -> tensor<2x3x4xf32> {
  // CHECK: nd.take %{{.*}}[%{{.*}}] {padding_idx = 1 : i64} : tensor<5x4xf32>, tensor<2x3xi64> -> tensor<2x3x4xf32>
  %0 = nd.take %table[%i] {padding_idx = 1} : tensor<5x4xf32>, tensor<2x3xi64> -> tensor<2x3x4xf32>
  return %0 : tensor<2x3x4xf32>
}

// CHECK-LABEL: func.func @scatter_add
func.func @scatter_add(%i: tensor<2x3xi64>, %u: tensor<2x3x4xf32>, %init: tensor<5x4xf32>) -> tensor<5x4xf32> {
  // CHECK: nd.scatter_add %{{.*}}, %{{.*}} : tensor<2x3xi64>, tensor<2x3x4xf32> -> tensor<5x4xf32>
  %0 = nd.scatter_add %i, %u : tensor<2x3xi64>, tensor<2x3x4xf32> -> tensor<5x4xf32>
  // CHECK: nd.scatter_add %{{.*}}, %{{.*}} init %{{.*}} : tensor<5x4xf32> : tensor<2x3xi64>, tensor<2x3x4xf32> -> tensor<5x4xf32>
  %1 = nd.scatter_add %i, %u init %0 : tensor<5x4xf32> : tensor<2x3xi64>, tensor<2x3x4xf32> -> tensor<5x4xf32>
  return %1 : tensor<5x4xf32>
}

// CHECK-LABEL: func.func @along
func.func @along(%x: tensor<2x5xf32>, %i: tensor<2x3xi64>) -> tensor<2x5xf32> {
  // CHECK: nd.take_along %{{.*}}[%{{.*}}] dim = 1 : tensor<2x5xf32>, tensor<2x3xi64> -> tensor<2x3xf32>
  %0 = nd.take_along %x[%i] dim = 1 : tensor<2x5xf32>, tensor<2x3xi64> -> tensor<2x3xf32>
  // CHECK: nd.scatter_add_along %{{.*}}, %{{.*}} dim = 1 : tensor<2x3xi64>, tensor<2x3xf32> -> tensor<2x5xf32>
  %1 = nd.scatter_add_along %i, %0 dim = 1 : tensor<2x3xi64>, tensor<2x3xf32> -> tensor<2x5xf32>
  return %1 : tensor<2x5xf32>
}

// CHECK-LABEL: func.func @copies
func.func @copies(%x: tensor<12x5xf32>, %own: tensor<4x5xf32>) -> tensor<12x5xf32> {
  // CHECK: nd.sum_copies %{{.*}} dim = 0 unit = 2 units = 2 groups = [0, -1, 0, 0, -1, 0] : tensor<12x5xf32> -> tensor<1x4x5xf32>
  %0 = nd.sum_copies %x dim = 0 unit = 2 units = 2 groups = [0, -1, 0, 0, -1, 0] : tensor<12x5xf32> -> tensor<1x4x5xf32>
  // CHECK: nd.make_copies %{{.*}} dim = 0 unit = 2 units = 2 groups = [0, -1, 0, 0, -1, 0] : tensor<1x4x5xf32> -> tensor<12x5xf32>
  %1 = nd.make_copies %0 dim = 0 unit = 2 units = 2 groups = [0, -1, 0, 0, -1, 0] : tensor<1x4x5xf32> -> tensor<12x5xf32>
  // One of three shards, and of each unit in it one of two.
  // CHECK: nd.sum_copies %{{.*}} {shard_axes = ["tp"], unit_axes = ["fsdp"]} : tensor<4x5xf32> -> tensor<1x4x5xf32>
  %2 = nd.sum_copies %own dim = 0 unit = 2 units = 4 groups = [0, -1, 0, 0, -1, 0, 0, 0, 0, -1, -1, -1] {shard_axes = ["tp"], unit_axes = ["fsdp"]}
      : tensor<4x5xf32> -> tensor<1x4x5xf32>
  return %1 : tensor<12x5xf32>
}
