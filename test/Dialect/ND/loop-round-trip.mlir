// RUN: nd-opt %s | nd-opt | FileCheck %s

// CHECK-LABEL: func.func @borders
func.func @borders(%all: tensor<4x2x8xf32>) -> tensor<2x8xf32> {
  // CHECK: %[[X:.*]] = nd.microbatch %{{.*}} : tensor<4x2x8xf32> -> tensor<2x8xf32>
  %0 = nd.microbatch %all : tensor<4x2x8xf32> -> tensor<2x8xf32>
  // CHECK: nd.accumulate %[[X]] count = 4 : tensor<2x8xf32>
  %1 = nd.accumulate %0 count = 4 : tensor<2x8xf32>
  return %1 : tensor<2x8xf32>
}

// CHECK-LABEL: func.func @loop
func.func @loop(%x: tensor<4x8xf32>, %zero: tensor<8xf32>, %w: tensor<8xf32>) -> tensor<8xf32> {
  // CHECK: nd.repeat count = 4 sliced(%{{.*}} : tensor<4x8xf32>) carried(%{{.*}} : tensor<8xf32>) captured(%{{.*}} : tensor<8xf32>) {
  // CHECK-NEXT: ^bb0(%[[ROW:.*]]: tensor<8xf32>, %[[SUM:.*]]: tensor<8xf32>, %[[W:.*]]: tensor<8xf32>):
  // CHECK: nd.yield
  %0 = nd.repeat count = 4 sliced(%x : tensor<4x8xf32>) carried(%zero : tensor<8xf32>) captured(%w : tensor<8xf32>) {
  ^bb0(%row: tensor<8xf32>, %sum: tensor<8xf32>, %weight: tensor<8xf32>):
    %1 = arith.mulf %row, %weight : tensor<8xf32>
    %2 = arith.addf %sum, %1 : tensor<8xf32>
    nd.yield %2 : tensor<8xf32>
  }
  return %0 : tensor<8xf32>
}
