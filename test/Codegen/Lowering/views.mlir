// RUN: nd-opt %s -nd-to-rt -split-input-file | FileCheck %s

// A transposed operand of a product is a view of it.
// CHECK-LABEL: rt.program @transposed
// CHECK-NEXT: %[[X:.*]] = rt.tensor "input" "arg0" : memref<4x8xf32>
// CHECK-NEXT: %[[W:.*]] = rt.tensor "input" "arg1" : memref<6x8xf32>
// CHECK-NEXT: %[[Y:.*]] = rt.tensor output "output" "result0" : memref<4x6xf32>
// CHECK: %[[WT:.*]] = rt.view %[[W]] : memref<6x8xf32> to memref<8x6xf32, strided<[1, 8]>>
// CHECK-NEXT: rt.gemm %[[X]], %[[WT]] into %[[Y]]
func.func @transposed(%x: tensor<4x8xf32>, %w: tensor<6x8xf32>) -> tensor<4x6xf32> {
  %0 = nd.gemm %x, %w transposed : tensor<4x8xf32>, tensor<6x8xf32> -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}

// -----

// Query, key and value are read where the packed projection put them; the result is written [B, S, H, D], so that the
// transpose and the reshape after it are views.
// CHECK-LABEL: rt.program @attention
func.func @attention(%qkv: tensor<10x48xf32>, %w: tensor<16x16xf32>) -> tensor<10x16xf32> {
  // CHECK: %[[BUFFER:.*]] = rt.buffer : memref<2x4x5x4xf32>
  // CHECK-DAG: %[[Q:.*]] = rt.view %{{.*}} : memref<10x48xf32> to memref<2x4x5x4xf32, strided<[240, 4, 48, 1]>>
  // CHECK-DAG: %[[K:.*]] = rt.view %{{.*}} : memref<10x48xf32> to memref<2x4x5x4xf32, strided<[240, 4, 48, 1], offset: 16>>
  // CHECK-DAG: %[[V:.*]] = rt.view %{{.*}} : memref<10x48xf32> to memref<2x4x5x4xf32, strided<[240, 4, 48, 1], offset: 32>>
  // CHECK: %[[O:.*]] = rt.view %[[BUFFER]] : memref<2x4x5x4xf32> to memref<2x4x5x4xf32, strided<[80, 4, 16, 1]>>
  // CHECK: rt.attention ins(%[[Q]], %[[K]], %[[V]]) outs(%[[O]],
  // CHECK: %[[ROWS:.*]] = rt.view %[[BUFFER]] : memref<2x4x5x4xf32> to memref<10x16xf32>
  // CHECK: rt.gemm %[[ROWS]],
  // CHECK-NOT: rt.copy
  // CHECK-NOT: rt.launch
  %0 = nd.reshape %qkv : tensor<10x48xf32> -> tensor<2x5x48xf32>
  %1 = nd.slice %0 starts = [0, 0, 0] strides = [1, 1, 1] : tensor<2x5x48xf32> -> tensor<2x5x16xf32>
  %2 = nd.slice %0 starts = [0, 0, 16] strides = [1, 1, 1] : tensor<2x5x48xf32> -> tensor<2x5x16xf32>
  %3 = nd.slice %0 starts = [0, 0, 32] strides = [1, 1, 1] : tensor<2x5x48xf32> -> tensor<2x5x16xf32>
  %4 = nd.reshape %1 : tensor<2x5x16xf32> -> tensor<2x5x4x4xf32>
  %5 = nd.reshape %2 : tensor<2x5x16xf32> -> tensor<2x5x4x4xf32>
  %6 = nd.reshape %3 : tensor<2x5x16xf32> -> tensor<2x5x4x4xf32>
  %q = nd.transpose %4 permutation = [0, 2, 1, 3] : tensor<2x5x4x4xf32> -> tensor<2x4x5x4xf32>
  %k = nd.transpose %5 permutation = [0, 2, 1, 3] : tensor<2x5x4x4xf32> -> tensor<2x4x5x4xf32>
  %v = nd.transpose %6 permutation = [0, 2, 1, 3] : tensor<2x5x4x4xf32> -> tensor<2x4x5x4xf32>
  %o, %lse = nd.attention %q, %k, %v scale = 0.5 causal
    : tensor<2x4x5x4xf32>, tensor<2x4x5x4xf32>, tensor<2x4x5x4xf32> -> tensor<2x4x5x4xf32>, tensor<2x4x5xf32>
  %7 = nd.transpose %o permutation = [0, 2, 1, 3] : tensor<2x4x5x4xf32> -> tensor<2x5x4x4xf32>
  %8 = nd.reshape %7 : tensor<2x5x4x4xf32> -> tensor<10x16xf32>
  %9 = nd.gemm %8, %w : tensor<10x16xf32>, tensor<16x16xf32> -> tensor<10x16xf32>
  return %9 : tensor<10x16xf32>
}

// -----

// Gradients of packed parts are written where the concatenation has them.
// CHECK-LABEL: rt.program @packed_gradient
func.func @packed_gradient(%a: tensor<6x4xf32>, %b: tensor<4x8xf32>, %w: tensor<16x4xf32>) -> tensor<6x4xf32> {
  // CHECK: %[[ALL:.*]] = rt.buffer : memref<6x16xf32>
  // CHECK: %[[FIRST:.*]] = rt.view %[[ALL]] : memref<6x16xf32> to memref<6x8xf32, strided<[16, 1]>>
  // CHECK: rt.gemm {{.*}} into %[[FIRST]]
  // CHECK: %[[SECOND:.*]] = rt.view %[[ALL]] : memref<6x16xf32> to memref<6x8xf32, strided<[16, 1], offset: 8>>
  // CHECK: rt.gemm {{.*}} into %[[SECOND]]
  // CHECK: rt.gemm %[[ALL]],
  // CHECK-NOT: rt.copy
  // CHECK-NOT: rt.launch
  %0 = nd.gemm %a, %b : tensor<6x4xf32>, tensor<4x8xf32> -> tensor<6x8xf32>
  %1 = nd.gemm %a, %b : tensor<6x4xf32>, tensor<4x8xf32> -> tensor<6x8xf32>
  %2 = nd.concat %0, %1 dim = 1 : tensor<6x8xf32>, tensor<6x8xf32> -> tensor<6x16xf32>
  %3 = nd.gemm %2, %w : tensor<6x16xf32>, tensor<16x4xf32> -> tensor<6x4xf32>
  return %3 : tensor<6x4xf32>
}

// -----

// One value cannot be in two places: its second part is a copy, and so is an argument's.
// CHECK-LABEL: rt.program @parts_by_copy
func.func @parts_by_copy(%a: tensor<2x4xf32>, %b: tensor<4x8xf32>) -> tensor<6x8xf32> {
  // CHECK: %[[A:.*]] = rt.tensor "input" "arg0"
  // CHECK: %[[OUT:.*]] = rt.tensor output "output" "result0"
  // CHECK: %[[FIRST:.*]] = rt.view %[[OUT]] : memref<6x8xf32> to memref<2x8xf32>{{$}}
  // CHECK: rt.gemm {{.*}} into %[[FIRST]]
  // CHECK: %[[SECOND:.*]] = rt.view %[[OUT]] : memref<6x8xf32> to memref<2x8xf32, strided<[8, 1], offset: 16>>
  // CHECK: rt.copy %[[FIRST]] to %[[SECOND]]
  %0 = nd.gemm %a, %b : tensor<2x4xf32>, tensor<4x8xf32> -> tensor<2x8xf32>
  %1 = nd.slice %b starts = [1, 0] strides = [1, 1] : tensor<4x8xf32> -> tensor<2x8xf32>
  %2 = nd.concat %0, %0, %1 dim = 0 : tensor<2x8xf32>, tensor<2x8xf32>, tensor<2x8xf32> -> tensor<6x8xf32>
  return %2 : tensor<6x8xf32>
}

// -----

// A reshape that no strides can say is a copy by a kernel, made once.
// CHECK-LABEL: rt.program @impossible_view
func.func @impossible_view(%x: tensor<4x8xf32>, %w: tensor<16x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>) {
  // CHECK-COUNT-1: rt.launch @kernel0
  // CHECK-NOT: rt.launch
  // CHECK: rt.kernel @kernel0 inputs [memref<8x4xf32, strided<[1, 8]>>] results [memref<8x4xf32>]
  %0 = nd.transpose %x permutation = [1, 0] : tensor<4x8xf32> -> tensor<8x4xf32>
  %1 = nd.reshape %0 : tensor<8x4xf32> -> tensor<2x16xf32>
  %2 = nd.gemm %1, %w : tensor<2x16xf32>, tensor<16x3xf32> -> tensor<2x3xf32>
  %3 = nd.gemm %1, %w : tensor<2x16xf32>, tensor<16x3xf32> -> tensor<2x3xf32>
  return %2, %3 : tensor<2x3xf32>, tensor<2x3xf32>
}
