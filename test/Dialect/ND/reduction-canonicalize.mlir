// RUN: nd-opt %s --canonicalize -split-input-file | FileCheck %s

// CHECK-LABEL: func.func @reduce_over_nothing
func.func @reduce_over_nothing(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  // CHECK-NEXT: return %arg0
  %0 = nd.reduce sum %x dims = [] : tensor<2x3xf32> -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

// CHECK-LABEL: func.func @reduce_of_splat
func.func @reduce_of_splat() -> (tensor<2xf32>, tensor<2xf32>, tensor<i64>) {
  // CHECK-DAG: %[[SUM:.*]] = arith.constant dense<4.500000e+00> : tensor<2xf32>
  // CHECK-DAG: %[[MAX:.*]] = arith.constant dense<1.500000e+00> : tensor<2xf32>
  // CHECK-DAG: %[[COUNT:.*]] = arith.constant dense<42> : tensor<i64>
  // CHECK: return %[[SUM]], %[[MAX]], %[[COUNT]]
  %x = arith.constant dense<1.5> : tensor<2x3xf32>
  %n = arith.constant dense<7> : tensor<2x3xi64>
  %0 = nd.reduce sum %x dims = [1] : tensor<2x3xf32> -> tensor<2xf32>
  %1 = nd.reduce max %x dims = [1] : tensor<2x3xf32> -> tensor<2xf32>
  %2 = nd.reduce sum %n dims = [0, 1] : tensor<2x3xi64> -> tensor<i64>
  return %0, %1, %2 : tensor<2xf32>, tensor<2xf32>, tensor<i64>
}

// CHECK-LABEL: func.func @reduce_of_reduce
func.func @reduce_of_reduce(%x: tensor<2x3x4x5xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  // CHECK-DAG: nd.reduce sum %arg0 dims = [0, 1, 3] : tensor<2x3x4x5xf32> -> tensor<4xf32>
  // CHECK-DAG: nd.reduce max %arg0 dims = [1] : tensor<2x3x4x5xf32> -> tensor<2x4x5xf32>
  // CHECK-DAG: nd.reduce min {{.*}} dims = [0, 2] : tensor<2x4x5xf32> -> tensor<4xf32>
  %0 = nd.reduce sum %x dims = [1] : tensor<2x3x4x5xf32> -> tensor<2x4x5xf32>
  %1 = nd.reduce sum %0 dims = [0, 2] : tensor<2x4x5xf32> -> tensor<4xf32>
  %2 = nd.reduce max %x dims = [1] : tensor<2x3x4x5xf32> -> tensor<2x4x5xf32>
  %3 = nd.reduce min %2 dims = [0, 2] : tensor<2x4x5xf32> -> tensor<4xf32>
  return %1, %3 : tensor<4xf32>, tensor<4xf32>
}

// CHECK-LABEL: func.func @reduce_of_unit_dims
func.func @reduce_of_unit_dims(%x: tensor<1x3x1xf32>) -> tensor<3xf32> {
  // CHECK-NEXT: nd.reshape %arg0 : tensor<1x3x1xf32> -> tensor<3xf32>
  // CHECK-NEXT: return
  %0 = nd.reduce sum %x dims = [0, 2] : tensor<1x3x1xf32> -> tensor<3xf32>
  return %0 : tensor<3xf32>
}

// -----

// CHECK-LABEL: func.func @sum_of_broadcast
func.func @sum_of_broadcast(%x: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<4x2xf32>, tensor<2x5xf32>) {
  // CHECK-DAG: %[[COUNT:.*]] = arith.constant dense<2.000000e+01> : tensor<2x3xf32>
  // CHECK-DAG: %[[FOUR:.*]] = arith.constant dense<4.000000e+00> : tensor<2xf32>
  // CHECK-DAG: %[[A:.*]] = arith.mulf %arg0, %[[COUNT]] : tensor<2x3xf32>
  // CHECK-DAG: %[[SUM:.*]] = nd.reduce sum %arg0 dims = [1] : tensor<2x3xf32> -> tensor<2xf32>
  // CHECK-DAG: %[[TIMES:.*]] = arith.mulf %{{.*}}, %[[FOUR]] : tensor<2xf32>
  // CHECK-DAG: nd.broadcast %[[TIMES]] dims = [0] : tensor<2xf32> -> tensor<2x5xf32>
  %0 = nd.broadcast %x dims = [1, 2] : tensor<2x3xf32> -> tensor<4x2x3x5xf32>
  %1 = nd.reduce sum %0 dims = [0, 3] : tensor<4x2x3x5xf32> -> tensor<2x3xf32>
  %2 = nd.broadcast %x dims = [1, 2] : tensor<2x3xf32> -> tensor<4x2x3xf32>
  %3 = nd.reduce sum %2 dims = [2] : tensor<4x2x3xf32> -> tensor<4x2xf32>
  %4 = nd.reduce sum %0 dims = [0, 2] : tensor<4x2x3x5xf32> -> tensor<2x5xf32>
  return %1, %3, %4 : tensor<2x3xf32>, tensor<4x2xf32>, tensor<2x5xf32>
}

// CHECK-LABEL: func.func @max_of_broadcast
func.func @max_of_broadcast(%x: tensor<2xf32>) -> tensor<2xf32> {
  // CHECK-NEXT: return %arg0
  %0 = nd.broadcast %x dims = [0] : tensor<2xf32> -> tensor<2x5xf32>
  %1 = nd.reduce max %0 dims = [1] : tensor<2x5xf32> -> tensor<2xf32>
  return %1 : tensor<2xf32>
}

// bf16 has no 257.
// CHECK-LABEL: func.func @count_without_a_number
func.func @count_without_a_number(%x: tensor<2xbf16>) -> tensor<2xbf16> {
  // CHECK-NEXT: nd.broadcast
  // CHECK-NEXT: nd.reduce sum
  %0 = nd.broadcast %x dims = [0] : tensor<2xbf16> -> tensor<2x257xbf16>
  %1 = nd.reduce sum %0 dims = [1] : tensor<2x257xbf16> -> tensor<2xbf16>
  return %1 : tensor<2xbf16>
}

// CHECK-LABEL: func.func @reduce_of_transpose
func.func @reduce_of_transpose(%x: tensor<2x3x4xf32>) -> (tensor<2x4xf32>, tensor<4x2xf32>) {
  // CHECK-DAG: nd.reduce sum %arg0 dims = [1] : tensor<2x3x4xf32> -> tensor<2x4xf32>
  // CHECK-DAG: nd.reduce sum %{{.*}} dims = [1] : tensor<4x3x2xf32> -> tensor<4x2xf32>
  %0 = nd.transpose %x permutation = [1, 0, 2] : tensor<2x3x4xf32> -> tensor<3x2x4xf32>
  %1 = nd.reduce sum %0 dims = [0] : tensor<3x2x4xf32> -> tensor<2x4xf32>
  %2 = nd.transpose %x permutation = [2, 1, 0] : tensor<2x3x4xf32> -> tensor<4x3x2xf32>
  %3 = nd.reduce sum %2 dims = [1] : tensor<4x3x2xf32> -> tensor<4x2xf32>
  return %1, %3 : tensor<2x4xf32>, tensor<4x2xf32>
}

// -----

// CHECK-LABEL: func.func @dot_of_transposed_weight
func.func @dot_of_transposed_weight(%x: tensor<5x3xf32>, %w: tensor<4x3xf32>) -> tensor<5x4xf32> {
  // CHECK-NEXT: nd.dot_general %arg0, %arg1 contract = [1] x [1] : tensor<5x3xf32>, tensor<4x3xf32> -> tensor<5x4xf32>
  // CHECK-NEXT: return
  %0 = nd.transpose %w permutation = [1, 0] : tensor<4x3xf32> -> tensor<3x4xf32>
  %1 = nd.dot_general %x, %0 contract = [1] x [0] : tensor<5x3xf32>, tensor<3x4xf32> -> tensor<5x4xf32>
  return %1 : tensor<5x4xf32>
}

// CHECK-LABEL: func.func @dot_of_transposed_heads
func.func @dot_of_transposed_heads(%q: tensor<2x5x4x3xf32>, %k: tensor<2x6x4x3xf32>) -> tensor<2x4x5x6xf32> {
  // CHECK-NEXT: nd.dot_general %arg0, %arg1 batch = [0, 2] x [0, 2] contract = [3] x [3]
  // CHECK-NEXT: return
  %0 = nd.transpose %q permutation = [0, 2, 1, 3] : tensor<2x5x4x3xf32> -> tensor<2x4x5x3xf32>
  %1 = nd.transpose %k permutation = [0, 2, 3, 1] : tensor<2x6x4x3xf32> -> tensor<2x4x3x6xf32>
  %2 = nd.dot_general %0, %1 batch = [0, 1] x [0, 1] contract = [3] x [2] : tensor<2x4x5x3xf32>, tensor<2x4x3x6xf32> -> tensor<2x4x5x6xf32>
  return %2 : tensor<2x4x5x6xf32>
}

// CHECK-LABEL: func.func @free_dimensions_out_of_order
func.func @free_dimensions_out_of_order(%x: tensor<2x5x3xf32>, %w: tensor<3x4xf32>) -> tensor<5x2x4xf32> {
  // CHECK-NEXT: nd.transpose
  // CHECK-NEXT: nd.dot_general
  %0 = nd.transpose %x permutation = [1, 0, 2] : tensor<2x5x3xf32> -> tensor<5x2x3xf32>
  %1 = nd.dot_general %0, %w contract = [2] x [0] : tensor<5x2x3xf32>, tensor<3x4xf32> -> tensor<5x2x4xf32>
  return %1 : tensor<5x2x4xf32>
}

// CHECK-LABEL: func.func @sorted_contraction
func.func @sorted_contraction(%x: tensor<2x3x4xf32>, %y: tensor<2x3x5xf32>) -> tensor<4x5xf32> {
  // CHECK-NEXT: nd.dot_general %arg0, %arg1 contract = [0, 1] x [0, 1]
  %0 = nd.dot_general %x, %y contract = [1, 0] x [1, 0] : tensor<2x3x4xf32>, tensor<2x3x5xf32> -> tensor<4x5xf32>
  return %0 : tensor<4x5xf32>
}

// CHECK-LABEL: func.func @transpose_of_dot
func.func @transpose_of_dot(%x: tensor<2x7x3xf32>, %y: tensor<2x7x4x5xf32>) -> tensor<2x4x5x3xf32> {
  // CHECK-NEXT: nd.dot_general %arg1, %arg0 batch = [0] x [0] contract = [1] x [1] : tensor<2x7x4x5xf32>, tensor<2x7x3xf32> -> tensor<2x4x5x3xf32>
  // CHECK-NEXT: return
  %0 = nd.dot_general %x, %y batch = [0] x [0] contract = [1] x [1] : tensor<2x7x3xf32>, tensor<2x7x4x5xf32> -> tensor<2x3x4x5xf32>
  %1 = nd.transpose %0 permutation = [0, 2, 3, 1] : tensor<2x3x4x5xf32> -> tensor<2x4x5x3xf32>
  return %1 : tensor<2x4x5x3xf32>
}
