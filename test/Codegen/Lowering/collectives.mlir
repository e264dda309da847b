// RUN: nd-opt %s -nd-to-rt -split-input-file | FileCheck %s

nd.mesh @mesh axes [#nd.axis<"dp" = 2, replicate>]

// Two gradients in one bucket: their products write into it, one call sums it, and the wait is before the first reader.
// CHECK-LABEL: rt.program @bucket
func.func @bucket(%x: tensor<4x4xf32>, %y: tensor<4x3xf32>) -> (tensor<4x3xf32>, tensor<4x4xf32>) {
  // CHECK: %[[BUCKET:.*]] = rt.buffer : memref<28xf32>
  // CHECK: %[[A:.*]] = rt.view %[[BUCKET]] : memref<28xf32> to memref<4x4xf32>
  // CHECK: rt.gemm {{.*}} into %[[A]]
  // CHECK: %[[B:.*]] = rt.view %[[BUCKET]] : memref<28xf32> to memref<4x3xf32, strided<[3, 1], offset: 16>>
  // CHECK: rt.gemm {{.*}} into %[[B]]
  // CHECK: %[[E:.*]] = rt.collective_start all_reduce %[[BUCKET]] to %[[BUCKET]] axes = ["dp"] reduction = sum name = "a, b" reason = "gradients"
  // CHECK: rt.gemm
  // CHECK: rt.wait %[[E]]
  // CHECK: rt.gemm %[[A]], %[[B]]
  %xt = nd.gemm %x transposed, %x : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  %xy = nd.gemm %x transposed, %y : tensor<4x4xf32>, tensor<4x3xf32> -> tensor<4x3xf32>
  %0:2 = nd.all_reduce sum %xt, %xy over @mesh ["dp"] instance = 0 names = ["a", "b"] reason = "gradients"
    : tensor<4x4xf32>, tensor<4x3xf32>
  %1 = nd.gemm %x, %x : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  %2 = nd.gemm %0#0, %0#1 : tensor<4x4xf32>, tensor<4x3xf32> -> tensor<4x3xf32>
  return %2, %1 : tensor<4x3xf32>, tensor<4x4xf32>
}

// -----

nd.mesh @mesh axes [#nd.axis<"dp" = 2, replicate>]

// A single all-reduce runs in the result's own place; a 0-d one is counted as a scalar.
// CHECK-LABEL: rt.program @scalar
func.func @scalar(%x: tensor<f32> {nd.kind = "input", nd.name = "x"}) -> (tensor<f32> {nd.kind = "metric", nd.name = "loss"}) {
  // CHECK: %[[X:.*]] = rt.tensor "input" "x"
  // CHECK: %[[LOSS:.*]] = rt.tensor output "metric" "loss"
  // CHECK: rt.copy %[[X]] to %[[LOSS]]
  // CHECK: %[[E:.*]] = rt.collective_start all_reduce %[[LOSS]] to %[[LOSS]] {{.*}} scalar
  // CHECK: rt.wait %[[E]]
  %0 = nd.all_reduce sum %x over @mesh ["dp"] instance = 0 names = ["loss"] reason = "loss" : tensor<f32>
  return %0 : tensor<f32>
}

// -----

nd.mesh @mesh axes [#nd.axis<"dp" = 2, replicate>]

// Parts arrive rank by rank; joining them inside a row is a copy.
// CHECK-LABEL: rt.program @gather
func.func @gather(%x: tensor<4x3xf32>) -> (tensor<8x3xf32>, tensor<4x6xf32>) {
  // CHECK: rt.collective_start all_gather %{{.*}} to %[[ROWS:.*]] axes = ["dp"] reduction = sum name = "x" {{.*}} : memref<4x3xf32> to memref<8x3xf32>
  // CHECK: rt.collective_start all_gather %{{.*}} to %[[PARTS:.*]] axes = ["dp"] {{.*}} : memref<4x3xf32> to memref<2x4x3x1xf32>
  // CHECK: rt.wait
  // CHECK: rt.launch
  %0 = nd.all_gather %x over @mesh ["dp"] dim = 0 instance = 0 name = "x" reason = "test" : tensor<4x3xf32> -> tensor<8x3xf32>
  %1 = nd.all_gather %x over @mesh ["dp"] dim = 1 instance = 1 name = "x" reason = "test" : tensor<4x3xf32> -> tensor<4x6xf32>
  return %0, %1 : tensor<8x3xf32>, tensor<4x6xf32>
}

// -----

nd.mesh @mesh axes [#nd.axis<"dp" = 2, replicate>]

// What partitioning left on an argument goes into the table of tensors.
// CHECK-LABEL: rt.program @sharded
// CHECK-NEXT: rt.tensor "input" "x" {bound = 7 : i64, dim_axes = {{\[\[}}"dp"], []], global_shape = array<i64: 8, 3>} : memref<4x3xi64>
func.func @sharded(%x: tensor<4x3xi64> {nd.kind = "input", nd.name = "x", nd.bound = 7 : i64,
    nd.sharding = #nd.sharding<@mesh, [{"dp"}, {}]>, nd.global_shape = array<i64: 8, 3>}) -> tensor<4x3xi64> {
  return %x : tensor<4x3xi64>
}
