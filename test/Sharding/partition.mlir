// RUN: nd-opt %s -nd-verify-sharding -nd-partition -nd-verify-sharding -split-input-file | FileCheck %s

nd.mesh @mesh axes [#nd.axis<"dp" = 2, replicate>, #nd.axis<"tp" = 2, tensor>]

// CHECK-LABEL: func.func @collectives
// CHECK-SAME: tensor<2x8xf32> {nd.global_shape = array<i64: 4, 8>, nd.sharding = #nd.sharding<@mesh, [{"dp"}, {}]>}
// CHECK-SAME: -> (tensor<4x8xf32> {nd.global_shape = array<i64: 4, 8>, nd.sharding = #nd.sharding<@mesh, [{}, {}]>},
// CHECK-SAME: tensor<8xf32> {nd.global_shape = array<i64: 8>, nd.sharding = #nd.sharding<@mesh, [{}]>},
// CHECK-SAME: tensor<4xf32> {nd.global_shape = array<i64: 8>, nd.sharding = #nd.sharding<@mesh, [{"dp"}]>})
func.func @collectives(%x: tensor<4x8xf32, #nd.sharding<@mesh, [{"dp"}, {}]>> {nd.sharding = #nd.sharding<@mesh, [{"dp"}, {}]>})
    -> (tensor<4x8xf32, #nd.sharding<@mesh, [{}, {}]>>, tensor<8xf32, #nd.sharding<@mesh, [{}]>>, tensor<8xf32, #nd.sharding<@mesh, [{"dp"}]>>) {
  // CHECK: %[[G:.*]] = nd.all_gather %{{.*}} over @mesh ["dp"] dims = [0] instance = 1 names = ["x"] reason = "whole" : tensor<2x8xf32> -> tensor<4x8xf32>
  %0 = nd.reshard %x instance = 5 name = "x" reason = "whole" : tensor<4x8xf32, #nd.sharding<@mesh, [{"dp"}, {}]>> -> tensor<4x8xf32, #nd.sharding<@mesh, [{}, {}]>>
  // CHECK: %[[S:.*]] = nd.reduce sum %{{.*}} dims = [0] : tensor<2x8xf32> -> tensor<8xf32>
  %1 = nd.reduce sum %x dims = [0] : tensor<4x8xf32, #nd.sharding<@mesh, [{"dp"}, {}]>> -> tensor<8xf32, #nd.sharding<@mesh, [{}], unreduced = sum {"dp"}>>
  // CHECK: %[[C:.*]] = arith.constant dense<2.000000e+00> : tensor<f32>
  %c = arith.constant dense<2.0> : tensor<f32, #nd.sharding<@mesh, []>>
  // CHECK: %[[B:.*]] = nd.broadcast %[[C]] dims = [] : tensor<f32> -> tensor<8xf32>
  // CHECK: %[[P:.*]] = arith.mulf %[[S]], %[[B]] : tensor<8xf32>
  %2 = nd.scale %1, %c : tensor<8xf32, #nd.sharding<@mesh, [{}], unreduced = sum {"dp"}>>, tensor<f32, #nd.sharding<@mesh, []>>
  // CHECK: %[[R:.*]] = nd.all_reduce sum %[[P]] over @mesh ["dp"] instance = 2 names = ["s"] reason = "sum" : tensor<8xf32>
  %3 = nd.reshard %2 instance = 6 name = "s" reason = "sum" : tensor<8xf32, #nd.sharding<@mesh, [{}], unreduced = sum {"dp"}>> -> tensor<8xf32, #nd.sharding<@mesh, [{}]>>
  // CHECK: %[[RS:.*]] = nd.reduce_scatter sum %[[S]] over @mesh ["dp"] dims = [0] instance = 3 names = ["r"] reason = "shard" : tensor<8xf32> -> tensor<4xf32>
  %4 = nd.reshard %1 instance = 7 name = "r" reason = "shard" : tensor<8xf32, #nd.sharding<@mesh, [{}], unreduced = sum {"dp"}>> -> tensor<8xf32, #nd.sharding<@mesh, [{"dp"}]>>
  // CHECK: return %[[G]], %[[R]], %[[RS]]
  return %0, %3, %4 : tensor<4x8xf32, #nd.sharding<@mesh, [{}, {}]>>, tensor<8xf32, #nd.sharding<@mesh, [{}]>>, tensor<8xf32, #nd.sharding<@mesh, [{"dp"}]>>
}

// -----

nd.mesh @mesh axes [#nd.axis<"dp" = 2, replicate>]

// Constants that repeat themselves along the sharded dimension, and iota along another one.
// CHECK-LABEL: func.func @local_constants
func.func @local_constants() -> (tensor<4x2xi64, #nd.sharding<@mesh, [{"dp"}, {}]>>, tensor<4x2xi64, #nd.sharding<@mesh, [{"dp"}, {}]>>, tensor<4xf32, #nd.sharding<@mesh, [{"dp"}]>>) {
  // CHECK: arith.constant dense<{{\[}}[1, 2], [1, 2]]> : tensor<2x2xi64>
  %0 = arith.constant dense<[[1, 2], [1, 2], [1, 2], [1, 2]]> : tensor<4x2xi64, #nd.sharding<@mesh, [{"dp"}, {}]>>
  // CHECK: nd.iota dim = 1 : tensor<2x2xi64>
  %1 = nd.iota dim = 1 : tensor<4x2xi64, #nd.sharding<@mesh, [{"dp"}, {}]>>
  // CHECK: arith.constant dense<3.000000e+00> : tensor<2xf32>
  %2 = arith.constant dense<3.0> : tensor<4xf32, #nd.sharding<@mesh, [{"dp"}]>>
  return %0, %1, %2 : tensor<4x2xi64, #nd.sharding<@mesh, [{"dp"}, {}]>>, tensor<4x2xi64, #nd.sharding<@mesh, [{"dp"}, {}]>>, tensor<4xf32, #nd.sharding<@mesh, [{"dp"}]>>
}

// -----

nd.mesh @mesh axes [#nd.axis<"dp" = 2, replicate>, #nd.axis<"tp" = 2, tensor>]

// The cheapest steps, each a collective, with the attributes of the reshard.
// CHECK-LABEL: func.func @steps
func.func @steps(%x: tensor<8x8xf32, #nd.sharding<@mesh, [{"dp"}, {"tp"}]>> {nd.sharding = #nd.sharding<@mesh, [{"dp"}, {"tp"}]>})
    -> (tensor<8x8xf32, #nd.sharding<@mesh, [{"tp"}, {"dp"}]>>, tensor<8x8xf32, #nd.sharding<@mesh, [{"dp", "tp"}, {}]>>, tensor<8x8xf32, #nd.sharding<@mesh, [{"dp"}, {}]>>, tensor<8x8xf32, #nd.sharding<@mesh, [{"dp"}, {"tp"}]>>) {
  // CHECK: nd.permute %arg0 over @mesh ["dp", "tp"] sources = [0, 2, 1, 3] before = <@mesh, [{"dp"}, {"tp"}]> after = <@mesh, [{"tp"}, {"dp"}]> instance = 1 name = "x" reason = "r" : tensor<4x4xf32>
  %0 = nd.reshard %x instance = 1 name = "x" reason = "r" : tensor<8x8xf32, #nd.sharding<@mesh, [{"dp"}, {"tp"}]>> -> tensor<8x8xf32, #nd.sharding<@mesh, [{"tp"}, {"dp"}]>>
  // CHECK: nd.all_to_all %arg0 over @mesh ["tp"] split_dim = 0 concat_dim = 1 instance = 2 name = "y" reason = "r" : tensor<4x4xf32> -> tensor<2x8xf32>
  %1 = nd.reshard %x instance = 2 name = "y" reason = "r" : tensor<8x8xf32, #nd.sharding<@mesh, [{"dp"}, {"tp"}]>> -> tensor<8x8xf32, #nd.sharding<@mesh, [{"dp", "tp"}, {}]>>
  // CHECK: %[[G:.*]] = nd.all_gather %arg0 over @mesh ["tp"] dims = [1] instance = 3 names = ["z"] reason = "r" {nd.unit = "h.0"} : tensor<4x4xf32> -> tensor<4x8xf32>
  %2 = nd.reshard %x instance = 3 name = "z" reason = "r" {nd.unit = "h.0"} : tensor<8x8xf32, #nd.sharding<@mesh, [{"dp"}, {"tp"}]>> -> tensor<8x8xf32, #nd.sharding<@mesh, [{"dp"}, {}]>>
  // CHECK: nd.all_slice %[[G]] over @mesh ["tp"] dim = 1 instance = 4 name = "w" reason = "r" : tensor<4x8xf32> -> tensor<4x4xf32>
  %3 = nd.reshard %2 instance = 4 name = "w" reason = "r" : tensor<8x8xf32, #nd.sharding<@mesh, [{"dp"}, {}]>> -> tensor<8x8xf32, #nd.sharding<@mesh, [{"dp"}, {"tp"}]>>
  return %0, %1, %2, %3 : tensor<8x8xf32, #nd.sharding<@mesh, [{"tp"}, {"dp"}]>>, tensor<8x8xf32, #nd.sharding<@mesh, [{"dp", "tp"}, {}]>>, tensor<8x8xf32, #nd.sharding<@mesh, [{"dp"}, {}]>>, tensor<8x8xf32, #nd.sharding<@mesh, [{"dp"}, {"tp"}]>>
}
