// RUN: nd-opt %s -nd-combine-collectives -split-input-file | FileCheck %s
// RUN: nd-opt %s -nd-combine-collectives=bucket-bytes=48 -split-input-file | FileCheck %s --check-prefix=SMALL
// RUN: not nd-opt %s -nd-combine-collectives=bucket-bytes=0 -split-input-file 2>&1 | FileCheck %s --check-prefix=ZERO

// ZERO: bucket-bytes=0, but a collective has at least 1 byte

nd.mesh @mesh axes [#nd.axis<"dp" = 2, replicate>, #nd.axis<"tp" = 2, tensor>]

// Gradients become one collective behind the last of them, in the order in which they are ready, and the updates move behind it;
// a number, another group, another reduction and another element type stay apart.
// CHECK-LABEL: func.func @gradients
// CHECK: nd.all_reduce sum %{{.*}} names = ["loss"]
// CHECK: arith.negf %{{.*}} : tensor<f32>
// CHECK: %[[G:.*]]:3 = nd.all_reduce sum %arg0, %arg1, %arg2 over @mesh ["dp"] instance = 2 names = ["b", "a", "c"] reason = "one; two" : tensor<6xf32>, tensor<2x3xf32>, tensor<5xf32>
// CHECK: arith.negf %[[G]]#0 : tensor<6xf32>
// CHECK: nd.all_reduce sum %{{.*}} over @mesh ["tp"] instance = 5
// CHECK: nd.all_reduce max %{{.*}} over @mesh ["dp"] instance = 6
// CHECK: nd.all_reduce max %{{.*}} over @mesh ["dp"] instance = 7
// CHECK: return

// 48 bytes: two tensors of 24, then one alone.
// SMALL-LABEL: func.func @gradients
// SMALL: nd.all_reduce sum %arg0, %arg1 over @mesh ["dp"] instance = 2 names = ["b", "a"] reason = "one; two"
// SMALL: nd.all_reduce sum %arg2 over @mesh ["dp"] instance = 4 names = ["c"] reason = "two"
func.func @gradients(%b: tensor<6xf32>, %a: tensor<2x3xf32>, %c: tensor<5xf32>, %l: tensor<f32>, %i: tensor<5xi64>)
    -> (tensor<f32>, tensor<6xf32>, tensor<2x3xf32>, tensor<5xf32>, tensor<6xf32>, tensor<5xf32>, tensor<5xi64>) {
  %0 = nd.all_reduce sum %b over @mesh ["dp"] instance = 2 names = ["b"] reason = "one" : tensor<6xf32>
  %u = arith.negf %0 : tensor<6xf32>
  %1 = nd.all_reduce sum %l over @mesh ["dp"] instance = 1 names = ["loss"] reason = "zero" : tensor<f32>
  %m = arith.negf %1 : tensor<f32>
  %2 = nd.all_reduce sum %a over @mesh ["dp"] instance = 3 names = ["a"] reason = "two" : tensor<2x3xf32>
  %3 = nd.all_reduce sum %c over @mesh ["dp"] instance = 4 names = ["c"] reason = "two" : tensor<5xf32>
  %4 = nd.all_reduce sum %b over @mesh ["tp"] instance = 5 names = ["b"] reason = "" : tensor<6xf32>
  %5 = nd.all_reduce max %c over @mesh ["dp"] instance = 6 names = ["c"] reason = "" : tensor<5xf32>
  %6 = nd.all_reduce max %i over @mesh ["dp"] instance = 7 names = ["i"] reason = "" : tensor<5xi64>
  return %m, %u, %2, %3, %4, %5, %6 : tensor<f32>, tensor<6xf32>, tensor<2x3xf32>, tensor<5xf32>, tensor<6xf32>, tensor<5xf32>, tensor<5xi64>
}

// -----

nd.mesh @mesh axes [#nd.axis<"dp" = 2, replicate>]

// A collective that waits for another cannot be one with it.
// CHECK-LABEL: func.func @dependent
// CHECK: %[[A:.*]] = nd.all_reduce sum %arg0 over @mesh ["dp"] instance = 1
// CHECK: %[[N:.*]] = arith.negf %[[A]]
// CHECK: nd.all_reduce sum %[[N]], %arg0 over @mesh ["dp"] instance = 2
func.func @dependent(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = nd.all_reduce sum %x over @mesh ["dp"] instance = 1 names = ["x"] reason = "" : tensor<4xf32>
  %1 = arith.negf %0 : tensor<4xf32>
  %2 = nd.all_reduce sum %1 over @mesh ["dp"] instance = 2 names = ["y"] reason = "" : tensor<4xf32>
  %3 = nd.all_reduce sum %x over @mesh ["dp"] instance = 3 names = ["z"] reason = "" : tensor<4xf32>
  return %2, %3 : tensor<4xf32>, tensor<4xf32>
}

// -----

nd.mesh @mesh axes [#nd.axis<"dp" = 2, replicate>, #nd.axis<"fsdp" = 2, shard>]

// Groups in turn: the scatters become one, then the reductions of their results.
// CHECK-LABEL: func.func @scatter_then_reduce
// CHECK: %[[S:.*]]:2 = nd.reduce_scatter sum %arg0, %arg1 over @mesh ["fsdp"] dims = [0, 1] instance = 1 names = ["a", "b"] reason = "s" : tensor<4x2xf32>, tensor<2x4xf32> -> tensor<2x2xf32>, tensor<2x2xf32>
// CHECK: nd.all_reduce sum %[[S]]#0, %[[S]]#1 over @mesh ["dp"] instance = 2 names = ["a", "b"] reason = "r"
func.func @scatter_then_reduce(%a: tensor<4x2xf32>, %b: tensor<2x4xf32>) -> (tensor<2x2xf32>, tensor<2x2xf32>) {
  %0 = nd.reduce_scatter sum %a over @mesh ["fsdp"] dims = [0] instance = 1 names = ["a"] reason = "s" : tensor<4x2xf32> -> tensor<2x2xf32>
  %1 = nd.all_reduce sum %0 over @mesh ["dp"] instance = 2 names = ["a"] reason = "r" : tensor<2x2xf32>
  %2 = nd.reduce_scatter sum %b over @mesh ["fsdp"] dims = [1] instance = 3 names = ["b"] reason = "s" : tensor<2x4xf32> -> tensor<2x2xf32>
  %3 = nd.all_reduce sum %2 over @mesh ["dp"] instance = 4 names = ["b"] reason = "r" : tensor<2x2xf32>
  return %1, %3 : tensor<2x2xf32>, tensor<2x2xf32>
}

// -----

nd.mesh @mesh axes [#nd.axis<"fsdp" = 2, shard>]

// Neighbouring gathers become one, but none waits behind a reader of another. Those of a unit stand where the first does.
// CHECK-LABEL: func.func @gathers
// CHECK: nd.all_gather %arg0, %arg1 over @mesh ["fsdp"] dims = [0, 0] instance = 1 names = ["a", "b"]
// CHECK: arith.negf
// CHECK: nd.all_gather %arg0 over @mesh ["fsdp"] dims = [0] instance = 3
// CHECK: nd.all_gather %arg0, %arg1 over @mesh ["fsdp"] dims = [0, 0] instance = 4 names = ["a", "b"] reason = "r" {nd.unit = "h.0"}
// CHECK: arith.negf
// CHECK: nd.all_gather %arg1 over @mesh ["fsdp"] dims = [0] instance = 6 names = ["b"] reason = "r" {nd.unit = "h.1"}
func.func @gathers(%a: tensor<2xf32>, %b: tensor<3xf32>) -> (tensor<4xf32>, tensor<6xf32>, tensor<4xf32>, tensor<4xf32>, tensor<6xf32>, tensor<6xf32>) {
  %0 = nd.all_gather %a over @mesh ["fsdp"] dims = [0] instance = 1 names = ["a"] reason = "r" : tensor<2xf32> -> tensor<4xf32>
  %1 = nd.all_gather %b over @mesh ["fsdp"] dims = [0] instance = 2 names = ["b"] reason = "r" : tensor<3xf32> -> tensor<6xf32>
  %2 = arith.negf %0 : tensor<4xf32>
  %3 = nd.all_gather %a over @mesh ["fsdp"] dims = [0] instance = 3 names = ["a"] reason = "r" : tensor<2xf32> -> tensor<4xf32>
  %4 = nd.all_gather %a over @mesh ["fsdp"] dims = [0] instance = 4 names = ["a"] reason = "r" {nd.unit = "h.0"} : tensor<2xf32> -> tensor<4xf32>
  %5 = arith.negf %4 : tensor<4xf32>
  %6 = nd.all_gather %b over @mesh ["fsdp"] dims = [0] instance = 5 names = ["b"] reason = "r" {nd.unit = "h.0"} : tensor<3xf32> -> tensor<6xf32>
  %7 = nd.all_gather %b over @mesh ["fsdp"] dims = [0] instance = 6 names = ["b"] reason = "r" {nd.unit = "h.1"} : tensor<3xf32> -> tensor<6xf32>
  return %2, %1, %3, %5, %6, %7 : tensor<4xf32>, tensor<6xf32>, tensor<4xf32>, tensor<4xf32>, tensor<6xf32>, tensor<6xf32>
}

// -----

// What is reduced in every microbatch is no part of what is reduced once.
nd.mesh @mesh axes [#nd.axis<"dp" = 2, replicate>]
// CHECK-LABEL: func.func @microbatches
func.func @microbatches(%all: tensor<3x8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  // CHECK: %[[X:.*]] = nd.microbatch
  // CHECK: nd.all_reduce sum %[[X]] over
  // CHECK: %[[A:.*]] = nd.accumulate
  // CHECK: nd.all_reduce sum %[[A]] over
  // CHECK: nd.accumulate
  %0 = nd.microbatch %all : tensor<3x8xf32> -> tensor<8xf32>
  %1 = nd.all_reduce sum %0 over @mesh ["dp"] instance = 1 names = ["inside"] reason = "" : tensor<8xf32>
  %2 = nd.accumulate %0 count = 3 : tensor<8xf32>
  %3 = nd.all_reduce sum %2 over @mesh ["dp"] instance = 2 names = ["behind"] reason = "" : tensor<8xf32>
  %4 = nd.accumulate %1 count = 3 : tensor<8xf32>
  return %3, %4 : tensor<8xf32>, tensor<8xf32>
}
