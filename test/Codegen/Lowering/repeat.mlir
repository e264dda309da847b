// RUN: nd-opt %s -nd-to-rt -split-input-file | FileCheck %s

// The sum starts from zero in the place of the result, and each turn adds to it there. The weight is read where it is; a
// row needs no copy.
// CHECK-LABEL: rt.program @sums
func.func @sums(%all: tensor<3x4x8xf32>, %w: tensor<8x8xf32>) -> tensor<8x8xf32> {
  // CHECK: %[[ALL:.*]] = rt.tensor "input" "arg0"
  // CHECK: %[[W:.*]] = rt.tensor "input" "arg1"
  // CHECK: %[[SUM:.*]] = rt.tensor output "output" "result0"
  // CHECK: %[[Y:.*]] = rt.buffer : memref<4x8xf32>
  // CHECK: rt.fill_zero %[[SUM]]
  // CHECK-NEXT: rt.repeat count = 3 sliced(%[[ALL]] : memref<3x4x8xf32>) {
  %zero = arith.constant dense<0.0> : tensor<8x8xf32>
  %0 = nd.repeat count = 3 sliced(%all : tensor<3x4x8xf32>) carried(%zero : tensor<8x8xf32>) captured(%w : tensor<8x8xf32>) {
  // CHECK-NEXT: ^bb0(%[[X:.*]]: memref<4x8xf32>):
  ^bb0(%x: tensor<4x8xf32>, %sum: tensor<8x8xf32>, %v: tensor<8x8xf32>):
    // CHECK: rt.gemm %[[X]], %[[W]] into %[[Y]] :
    %1 = nd.gemm %x, %v : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
    // CHECK: %[[XT:.*]] = rt.view %[[X]] : memref<4x8xf32> to memref<8x4xf32, strided<[1, 8]>>
    // CHECK: rt.gemm %[[XT]], %[[Y]] into %[[SUM]] accumulate
    %2 = nd.gemm %x transposed, %1 accumulate(%sum : tensor<8x8xf32>) : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<8x8xf32>
    nd.yield %2 : tensor<8x8xf32>
  }
  // CHECK-NOT: rt.copy
  return %0 : tensor<8x8xf32>
}

// -----

// Two values that change places every turn: both are read before either is written.
// CHECK-LABEL: rt.program @swap
func.func @swap(%a: tensor<8xf32>, %b: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  // CHECK-DAG: rt.copy %{{.*}} to %[[P:.*]] : memref<8xf32>
  // CHECK: rt.repeat count = 3 {
  // CHECK-NEXT: rt.copy %[[Q:.*]] to %[[FIRST:.*]] :
  // CHECK-NEXT: rt.copy %{{.*}} to %[[SECOND:.*]] :
  // CHECK-NEXT: rt.copy %[[FIRST]] to
  // CHECK-NEXT: rt.copy %[[SECOND]] to
  // CHECK-NEXT: }
  %0:2 = nd.repeat count = 3 carried(%a, %b : tensor<8xf32>, tensor<8xf32>) {
  ^bb0(%x: tensor<8xf32>, %y: tensor<8xf32>):
    nd.yield %y, %x : tensor<8xf32>, tensor<8xf32>
  }
  return %0#0, %0#1 : tensor<8xf32>, tensor<8xf32>
}
