// RUN: nd-opt %s -nd-to-rt -split-input-file | FileCheck %s

nd.mesh @mesh axes [#nd.axis<"dp" = 2, replicate>]

// Two gradients in one call: each is reduced where its product wrote it, and the wait is before the first reader.
// CHECK-LABEL: rt.program @several
// CHECK: rt.gemm {{.*}} into %[[A:[0-9]+]]
// CHECK: rt.gemm {{.*}} into %[[B:[0-9]+]]
// CHECK: %[[E:.*]] = rt.collective_start all_reduce ins(%[[A]], %[[B]] : memref<4x4xf32>, memref<4x3xf32>) outs(%[[A]], %[[B]] : {{.*}}) axes = ["dp"] reduction = sum name = "a, b" reason = "gradients"
// CHECK: rt.gemm
// CHECK: rt.wait %[[E]]
// CHECK: rt.gemm %[[A]], %[[B]]
func.func @several(%x: tensor<4x4xf32>, %y: tensor<4x3xf32>) -> (tensor<4x3xf32>, tensor<4x4xf32>) {
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
  // CHECK: %[[E:.*]] = rt.collective_start all_reduce ins(%[[LOSS]] : memref<f32>) outs(%[[LOSS]] : memref<f32>) {{.*}} scalar
  // CHECK: rt.wait %[[E]]
  %0 = nd.all_reduce sum %x over @mesh ["dp"] instance = 0 names = ["loss"] reason = "loss" : tensor<f32>
  return %0 : tensor<f32>
}

// -----

nd.mesh @mesh axes [#nd.axis<"dp" = 2, replicate>]

// Whatever the dimension, parts are read and written where they belong.
// CHECK-LABEL: rt.program @gather
func.func @gather(%x: tensor<4x3xf32>) -> (tensor<8x3xf32>, tensor<4x6xf32>) {
  // CHECK: rt.collective_start all_gather ins(%[[X:.*]] : memref<4x3xf32>) outs(%{{.*}} : memref<8x3xf32>) axes = ["dp"] dims = [0] reduction = sum name = "x"
  // CHECK: rt.collective_start all_gather ins(%[[X]] : memref<4x3xf32>) outs(%{{.*}} : memref<4x6xf32>) axes = ["dp"] dims = [1]
  // CHECK-NOT: rt.launch
  // CHECK: rt.wait
  // CHECK: rt.wait
  %0 = nd.all_gather %x over @mesh ["dp"] dims = [0] instance = 0 names = ["x"] reason = "test" : tensor<4x3xf32> -> tensor<8x3xf32>
  %1 = nd.all_gather %x over @mesh ["dp"] dims = [1] instance = 1 names = ["x"] reason = "test" : tensor<4x3xf32> -> tensor<4x6xf32>
  return %0, %1 : tensor<8x3xf32>, tensor<4x6xf32>
}

// -----

nd.mesh @mesh axes [#nd.axis<"dp" = 2, replicate>]

// Every kind; a constant is not in the arena, where peers read.
// CHECK-LABEL: rt.program @kinds
func.func @kinds(%x: tensor<4x6xf32>) -> (tensor<2x6xf32>, tensor<4x3xf32>, tensor<2x12xf32>, tensor<4x6xf32>, tensor<2x2xf32>) {
  // CHECK: %[[C:.*]] = rt.constant
  // CHECK: rt.collective_start reduce_scatter ins(%{{.*}}, %{{.*}} : memref<4x6xf32>, memref<4x6xf32>) outs(%{{.*}} : memref<2x6xf32>, memref<4x3xf32>) axes = ["dp"] dims = [0, 1] reduction = max name = "x, y"
  %0:2 = nd.reduce_scatter max %x, %x over @mesh ["dp"] dims = [0, 1] instance = 0 names = ["x", "y"] reason = "r" : tensor<4x6xf32>, tensor<4x6xf32> -> tensor<2x6xf32>, tensor<4x3xf32>
  // CHECK: rt.collective_start all_to_all ins(%{{.*}} : memref<4x6xf32>) outs(%{{.*}} : memref<2x12xf32>) axes = ["dp"] dims = [0, 1] reduction = sum
  %1 = nd.all_to_all %x over @mesh ["dp"] split_dim = 0 concat_dim = 1 instance = 1 name = "x" reason = "r" : tensor<4x6xf32> -> tensor<2x12xf32>
  // CHECK: rt.collective_start permute ins(%{{.*}} : memref<4x6xf32>) outs(%{{.*}} : memref<4x6xf32>) axes = ["dp"] permutation = [1, 0] reduction = sum
  %2 = nd.permute %x over @mesh ["dp"] sources = [1, 0] instance = 2 name = "x" reason = "r" : tensor<4x6xf32>
  %c = arith.constant dense<[[1.0, 2.0]]> : tensor<1x2xf32>
  // CHECK: rt.copy %[[C]] to %[[FRESH:.*]] :
  // CHECK: rt.collective_start all_gather ins(%[[FRESH]]
  %3 = nd.all_gather %c over @mesh ["dp"] dims = [0] instance = 3 names = ["c"] reason = "r" : tensor<1x2xf32> -> tensor<2x2xf32>
  return %0#0, %0#1, %1, %2, %3 : tensor<2x6xf32>, tensor<4x3xf32>, tensor<2x12xf32>, tensor<4x6xf32>, tensor<2x2xf32>
}

// -----

nd.mesh @mesh axes [#nd.axis<"dp" = 2, replicate>]

// CHECK-LABEL: rt.program @slice
func.func @slice(%x: tensor<4x6xf32>) -> tensor<4x3xf32> {
  // CHECK: rt.all_slice %{{.*}} to %{{.*}} axes = ["dp"] dim = 1 : memref<4x6xf32> to memref<4x3xf32>
  %0 = nd.all_slice %x over @mesh ["dp"] dim = 1 instance = 0 name = "x" reason = "r" : tensor<4x6xf32> -> tensor<4x3xf32>
  return %0 : tensor<4x3xf32>
}

// -----

nd.mesh @mesh axes [#nd.axis<"dp" = 2, replicate>]

// What a collective in flight reads is not overwritten: the state's new value waits for the gather of the old one.
// CHECK-LABEL: rt.program @overwritten
func.func @overwritten(%w: tensor<4xf32> {nd.kind = "weight", nd.name = "w"}, %x: tensor<4xf32>)
    -> (tensor<4xf32> {nd.kind = "weight", nd.name = "w"}, tensor<8xf32>) {
  // CHECK: %[[E:.*]] = rt.collective_start all_gather ins(%[[W:.*]] : memref<4xf32>)
  %0 = nd.all_gather %w over @mesh ["dp"] dims = [0] instance = 0 names = ["w"] reason = "r" : tensor<4xf32> -> tensor<8xf32>
  // CHECK: rt.wait %[[E]]
  // CHECK: rt.copy %{{.*}} to %[[W]]
  return %x, %0 : tensor<4xf32>, tensor<8xf32>
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

// -----

nd.mesh @mesh axes [#nd.axis<"cp" = 2, context>]

// Keys and values that go around side by side are one collective; what reads the one before, or moves otherwise, is another.
// CHECK-LABEL: rt.program @hops
// CHECK: %[[E:.*]] = rt.collective_start permute ins(%[[K:.*]], %[[V:.*]] : memref<4xf32>, memref<6xf32>) outs(%[[K1:.*]], %[[V1:.*]] : {{.*}}) axes = ["cp"] permutation = [1, 0] reduction = sum name = "keys, values"
// CHECK: rt.wait %[[E]]
// CHECK: rt.collective_start permute ins(%[[K1]] : memref<4xf32>)
// CHECK: rt.collective_start permute ins(%{{.*}} : memref<4xi64>)
// CHECK: rt.collective_start permute ins(%{{.*}} : memref<4xi64>) {{.*}} permutation = [0, 1]
func.func @hops(%k: tensor<4xf32>, %v: tensor<6xf32>, %i: tensor<4xi64>) -> (tensor<4xf32>, tensor<6xf32>, tensor<4xi64>, tensor<4xi64>) {
  %0 = nd.permute %k over @mesh ["cp"] sources = [1, 0] instance = 1 name = "keys" reason = "r" : tensor<4xf32>
  %1 = nd.permute %v over @mesh ["cp"] sources = [1, 0] instance = 2 name = "values" reason = "r" : tensor<6xf32>
  %2 = nd.permute %0 over @mesh ["cp"] sources = [1, 0] instance = 3 name = "keys" reason = "r" : tensor<4xf32>
  %3 = nd.permute %i over @mesh ["cp"] sources = [1, 0] instance = 4 name = "places" reason = "r" : tensor<4xi64>
  %4 = nd.permute %i over @mesh ["cp"] sources = [0, 1] instance = 5 name = "places" reason = "r" : tensor<4xi64>
  return %2, %1, %3, %4 : tensor<4xf32>, tensor<6xf32>, tensor<4xi64>, tensor<4xi64>
}
