// RUN: nd-opt %s --canonicalize -split-input-file | FileCheck %s

// CHECK-LABEL: func.func @broadcast_identity
func.func @broadcast_identity(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  // CHECK-NEXT: return %arg0
  %0 = nd.broadcast %x dims = [0, 1] : tensor<2x3xf32> -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

// CHECK-LABEL: func.func @broadcast_of_broadcast
func.func @broadcast_of_broadcast(%x: tensor<3xf32>) -> tensor<5x3x2x4xf32> {
  // CHECK-NEXT: %[[R:.*]] = nd.broadcast %arg0 dims = [1] : tensor<3xf32> -> tensor<5x3x2x4xf32>
  // CHECK-NEXT: return %[[R]]
  %0 = nd.broadcast %x dims = [0] : tensor<3xf32> -> tensor<3x4xf32>
  %1 = nd.broadcast %0 dims = [1, 3] : tensor<3x4xf32> -> tensor<5x3x2x4xf32>
  return %1 : tensor<5x3x2x4xf32>
}

// CHECK-LABEL: func.func @broadcast_of_splat
func.func @broadcast_of_splat() -> tensor<2x3xf32> {
  // CHECK-NEXT: arith.constant dense<2.000000e+00> : tensor<2x3xf32>
  // CHECK-NEXT: return
  %c = arith.constant dense<2.0> : tensor<f32>
  %0 = nd.broadcast %c dims = [] : tensor<f32> -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

// -----

// CHECK-LABEL: func.func @reshape_of_reshape
func.func @reshape_of_reshape(%x: tensor<2x6xf32>) -> (tensor<2x6xf32>, tensor<3x4xf32>) {
  // CHECK-NEXT: %[[R:.*]] = nd.reshape %arg0 : tensor<2x6xf32> -> tensor<3x4xf32>
  // CHECK-NEXT: return %arg0, %[[R]]
  %0 = nd.reshape %x : tensor<2x6xf32> -> tensor<12xf32>
  %1 = nd.reshape %0 : tensor<12xf32> -> tensor<2x6xf32>
  %2 = nd.reshape %0 : tensor<12xf32> -> tensor<3x4xf32>
  return %1, %2 : tensor<2x6xf32>, tensor<3x4xf32>
}

// CHECK-LABEL: func.func @reshape_of_constant
func.func @reshape_of_constant() -> tensor<2x2xi64> {
  // CHECK-NEXT: arith.constant dense<{{\[\[}}1, 2], [3, 4]]> : tensor<2x2xi64>
  // CHECK-NEXT: return
  %c = arith.constant dense<[1, 2, 3, 4]> : tensor<4xi64>
  %0 = nd.reshape %c : tensor<4xi64> -> tensor<2x2xi64>
  return %0 : tensor<2x2xi64>
}

// CHECK-LABEL: func.func @reshape_of_repeated_scalar
func.func @reshape_of_repeated_scalar(%s: tensor<f32>) -> tensor<6xf32> {
  // CHECK-NEXT: nd.broadcast %arg0 dims = [] : tensor<f32> -> tensor<6xf32>
  // CHECK-NEXT: return
  %0 = nd.broadcast %s dims = [] : tensor<f32> -> tensor<2x3xf32>
  %1 = nd.reshape %0 : tensor<2x3xf32> -> tensor<6xf32>
  return %1 : tensor<6xf32>
}

// -----

// CHECK-LABEL: func.func @transpose_of_transpose
func.func @transpose_of_transpose(%x: tensor<2x3x4xf32>) -> (tensor<4x3x2xf32>, tensor<2x3x4xf32>) {
  // CHECK-NEXT: %[[R:.*]] = nd.transpose %arg0 permutation = [2, 1, 0]
  // CHECK-NEXT: return %[[R]], %arg0
  %0 = nd.transpose %x permutation = [1, 2, 0] : tensor<2x3x4xf32> -> tensor<3x4x2xf32>
  %1 = nd.transpose %0 permutation = [1, 0, 2] : tensor<3x4x2xf32> -> tensor<4x3x2xf32>
  %2 = nd.transpose %0 permutation = [2, 0, 1] : tensor<3x4x2xf32> -> tensor<2x3x4xf32>
  return %1, %2 : tensor<4x3x2xf32>, tensor<2x3x4xf32>
}

// CHECK-LABEL: func.func @square_transpose_stays
func.func @square_transpose_stays(%x: tensor<3x3xf32>) -> tensor<3x3xf32> {
  // CHECK-NEXT: nd.transpose %arg0 permutation = [1, 0]
  %0 = nd.transpose %x permutation = [1, 0] : tensor<3x3xf32> -> tensor<3x3xf32>
  return %0 : tensor<3x3xf32>
}

// CHECK-LABEL: func.func @transpose_of_unit_dims
func.func @transpose_of_unit_dims(%x: tensor<2x1x3x1xf32>) -> tensor<1x2x1x3xf32> {
  // CHECK-NEXT: nd.reshape %arg0 : tensor<2x1x3x1xf32> -> tensor<1x2x1x3xf32>
  // CHECK-NEXT: return
  %0 = nd.transpose %x permutation = [3, 0, 1, 2] : tensor<2x1x3x1xf32> -> tensor<1x2x1x3xf32>
  return %0 : tensor<1x2x1x3xf32>
}

// CHECK-LABEL: func.func @transpose_of_broadcast
func.func @transpose_of_broadcast(%x: tensor<2xf32>, %y: tensor<2x3xf32>) -> (tensor<2x4xf32>, tensor<3x4x2xf32>) {
  // CHECK: nd.broadcast %arg0 dims = [0] : tensor<2xf32> -> tensor<2x4xf32>
  %0 = nd.broadcast %x dims = [1] : tensor<2xf32> -> tensor<4x2xf32>
  %1 = nd.transpose %0 permutation = [1, 0] : tensor<4x2xf32> -> tensor<2x4xf32>
  // The dimensions of %y change places: that is more than a broadcast.
  // CHECK: nd.transpose {{.*}} permutation = [1, 2, 0]
  %2 = nd.broadcast %y dims = [0, 1] : tensor<2x3xf32> -> tensor<2x3x4xf32>
  %3 = nd.transpose %2 permutation = [1, 2, 0] : tensor<2x3x4xf32> -> tensor<3x4x2xf32>
  return %1, %3 : tensor<2x4xf32>, tensor<3x4x2xf32>
}

// -----

// CHECK-LABEL: func.func @slice_identity
func.func @slice_identity(%x: tensor<1x3xf32>) -> tensor<1x3xf32> {
  // CHECK-NEXT: return %arg0
  %0 = nd.slice %x starts = [0, 0] strides = [2, 1] : tensor<1x3xf32> -> tensor<1x3xf32>
  return %0 : tensor<1x3xf32>
}

// CHECK-LABEL: func.func @slice_of_slice
func.func @slice_of_slice(%x: tensor<20x9xf32>) -> tensor<3x1xf32> {
  // CHECK-NEXT: nd.slice %arg0 starts = [4, 7] strides = [6, 1] : tensor<20x9xf32> -> tensor<3x1xf32>
  // CHECK-NEXT: return
  %0 = nd.slice %x starts = [1, 1] strides = [3, 2] : tensor<20x9xf32> -> tensor<6x4xf32>
  %1 = nd.slice %0 starts = [1, 3] strides = [2, 5] : tensor<6x4xf32> -> tensor<3x1xf32>
  return %1 : tensor<3x1xf32>
}

// CHECK-LABEL: func.func @slice_of_concat
func.func @slice_of_concat(%x: tensor<2x3xf32>, %y: tensor<2x4xf32>) -> (tensor<2x4xf32>, tensor<1x2xf32>, tensor<2x2xf32>) {
  // CHECK-DAG: %[[CONCAT:.*]] = nd.concat %arg0, %arg1
  // CHECK-DAG: %[[INNER:.*]] = nd.slice %arg1 starts = [1, 1] strides = [1, 2] : tensor<2x4xf32> -> tensor<1x2xf32>
  // CHECK-DAG: %[[BOTH:.*]] = nd.slice %[[CONCAT]] starts = [0, 2]
  // CHECK: return %arg1, %[[INNER]], %[[BOTH]]
  %0 = nd.concat %x, %y dim = 1 : tensor<2x3xf32>, tensor<2x4xf32> -> tensor<2x7xf32>
  %1 = nd.slice %0 starts = [0, 3] strides = [1, 1] : tensor<2x7xf32> -> tensor<2x4xf32>
  %2 = nd.slice %0 starts = [1, 4] strides = [1, 2] : tensor<2x7xf32> -> tensor<1x2xf32>
  %3 = nd.slice %0 starts = [0, 2] strides = [1, 1] : tensor<2x7xf32> -> tensor<2x2xf32>
  return %1, %2, %3 : tensor<2x4xf32>, tensor<1x2xf32>, tensor<2x2xf32>
}

// CHECK-LABEL: func.func @slice_of_broadcast
func.func @slice_of_broadcast(%x: tensor<6xf32>) -> (tensor<2x3xf32>, tensor<2x6xf32>) {
  // CHECK-DAG: %[[S:.*]] = nd.slice %arg0 starts = [1] strides = [2] : tensor<6xf32> -> tensor<3xf32>
  // CHECK-DAG: nd.broadcast %[[S]] dims = [1] : tensor<3xf32> -> tensor<2x3xf32>
  // CHECK-DAG: nd.broadcast %arg0 dims = [1] : tensor<6xf32> -> tensor<2x6xf32>
  %0 = nd.broadcast %x dims = [1] : tensor<6xf32> -> tensor<9x6xf32>
  %1 = nd.slice %0 starts = [4, 1] strides = [3, 2] : tensor<9x6xf32> -> tensor<2x3xf32>
  %2 = nd.slice %0 starts = [4, 0] strides = [3, 1] : tensor<9x6xf32> -> tensor<2x6xf32>
  return %1, %2 : tensor<2x3xf32>, tensor<2x6xf32>
}

// CHECK-LABEL: func.func @slice_of_pad
func.func @slice_of_pad(%x: tensor<4xf32>, %v: tensor<f32>) -> (tensor<2xf32>, tensor<3xf32>, tensor<3xf32>) {
  // CHECK-DAG: %[[PAD:.*]] = nd.pad %arg0
  // CHECK-DAG: %[[INNER:.*]] = nd.slice %arg0 starts = [1] strides = [2] : tensor<4xf32> -> tensor<2xf32>
  // CHECK-DAG: %[[OUTER:.*]] = nd.broadcast %arg1 dims = [] : tensor<f32> -> tensor<3xf32>
  // CHECK-DAG: %[[BOTH:.*]] = nd.slice %[[PAD]] starts = [2]
  // CHECK: return %[[INNER]], %[[OUTER]], %[[BOTH]]
  %0 = nd.pad %x, %v low = [3] high = [2] interior = [0] : tensor<4xf32>, tensor<f32> -> tensor<9xf32>
  %1 = nd.slice %0 starts = [4] strides = [2] : tensor<9xf32> -> tensor<2xf32>
  %2 = nd.slice %0 starts = [0] strides = [1] : tensor<9xf32> -> tensor<3xf32>
  %3 = nd.slice %0 starts = [2] strides = [1] : tensor<9xf32> -> tensor<3xf32>
  return %1, %2, %3 : tensor<2xf32>, tensor<3xf32>, tensor<3xf32>
}

// -----

// CHECK-LABEL: func.func @pad_by_nothing
func.func @pad_by_nothing(%x: tensor<1x3xf32>, %v: tensor<f32>) -> tensor<1x3xf32> {
  // CHECK-NEXT: return %arg0
  %0 = nd.pad %x, %v low = [0, 0] high = [0, 0] interior = [2, 0] : tensor<1x3xf32>, tensor<f32> -> tensor<1x3xf32>
  return %0 : tensor<1x3xf32>
}

// CHECK-LABEL: func.func @pad_of_same_splat
func.func @pad_of_same_splat() -> tensor<5xf32> {
  // CHECK-NEXT: arith.constant dense<1.000000e+00> : tensor<5xf32>
  // CHECK-NEXT: return
  %x = arith.constant dense<1.0> : tensor<3xf32>
  %v = arith.constant dense<1.0> : tensor<f32>
  %0 = nd.pad %x, %v low = [1] high = [1] interior = [0] : tensor<3xf32>, tensor<f32> -> tensor<5xf32>
  return %0 : tensor<5xf32>
}

// CHECK-LABEL: func.func @pad_of_pad
func.func @pad_of_pad(%x: tensor<3xf32>, %v: tensor<f32>) -> tensor<10xf32> {
  // CHECK-NEXT: nd.pad %arg0, %arg1 low = [3] high = [4] interior = [0] : tensor<3xf32>, tensor<f32> -> tensor<10xf32>
  // CHECK-NEXT: return
  %0 = nd.pad %x, %v low = [1] high = [2] interior = [0] : tensor<3xf32>, tensor<f32> -> tensor<6xf32>
  %1 = nd.pad %0, %v low = [2] high = [2] interior = [0] : tensor<6xf32>, tensor<f32> -> tensor<10xf32>
  return %1 : tensor<10xf32>
}

// -----

// CHECK-LABEL: func.func @concat_of_one
func.func @concat_of_one(%x: tensor<3xf32>) -> tensor<3xf32> {
  // CHECK-NEXT: return %arg0
  %0 = nd.concat %x dim = 0 : tensor<3xf32> -> tensor<3xf32>
  return %0 : tensor<3xf32>
}

// CHECK-LABEL: func.func @concat_of_splats
func.func @concat_of_splats() -> (tensor<5xf32>, tensor<3xf32>) {
  // CHECK-DAG: arith.constant dense<0.000000e+00> : tensor<5xf32>
  // CHECK-DAG: nd.concat
  %x = arith.constant dense<0.0> : tensor<3xf32>
  %y = arith.constant dense<0.0> : tensor<2xf32>
  %z = arith.constant dense<-0.0> : tensor<1xf32>
  %0 = nd.concat %x, %y dim = 0 : tensor<3xf32>, tensor<2xf32> -> tensor<5xf32>
  %1 = nd.concat %y, %z dim = 0 : tensor<2xf32>, tensor<1xf32> -> tensor<3xf32>
  return %0, %1 : tensor<5xf32>, tensor<3xf32>
}

// CHECK-LABEL: func.func @concat_of_all_slices
func.func @concat_of_all_slices(%x: tensor<2x7xf32>) -> tensor<2x7xf32> {
  // CHECK-NEXT: return %arg0
  %0 = nd.slice %x starts = [0, 0] strides = [1, 1] : tensor<2x7xf32> -> tensor<2x2xf32>
  %1 = nd.slice %x starts = [0, 2] strides = [1, 1] : tensor<2x7xf32> -> tensor<2x4xf32>
  %2 = nd.slice %x starts = [0, 6] strides = [1, 1] : tensor<2x7xf32> -> tensor<2x1xf32>
  %3 = nd.concat %0, %1, %2 dim = 1 : tensor<2x2xf32>, tensor<2x4xf32>, tensor<2x1xf32> -> tensor<2x7xf32>
  return %3 : tensor<2x7xf32>
}

// CHECK-LABEL: func.func @concat_of_swapped_halves
func.func @concat_of_swapped_halves(%x: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK: %[[R:.*]] = nd.concat %{{.*}}, %{{.*}} dim = 0 : tensor<2xf32>, tensor<2xf32> -> tensor<4xf32>
  // CHECK-NEXT: return %[[R]]
  %0 = nd.slice %x starts = [2] strides = [1] : tensor<4xf32> -> tensor<2xf32>
  %1 = nd.slice %x starts = [0] strides = [1] : tensor<4xf32> -> tensor<2xf32>
  %2 = nd.concat %0, %1 dim = 0 : tensor<2xf32>, tensor<2xf32> -> tensor<4xf32>
  return %2 : tensor<4xf32>
}

// CHECK-LABEL: func.func @concat_of_concat
func.func @concat_of_concat(%x: tensor<2xf32>, %y: tensor<3xf32>, %e: tensor<0xf32>) -> tensor<7xf32> {
  // CHECK-NEXT: nd.concat %arg0, %arg1, %arg0 dim = 0 : tensor<2xf32>, tensor<3xf32>, tensor<2xf32> -> tensor<7xf32>
  // CHECK-NEXT: return
  %0 = nd.concat %x, %y dim = 0 : tensor<2xf32>, tensor<3xf32> -> tensor<5xf32>
  %1 = nd.concat %0, %e, %x dim = 0 : tensor<5xf32>, tensor<0xf32>, tensor<2xf32> -> tensor<7xf32>
  return %1 : tensor<7xf32>
}
