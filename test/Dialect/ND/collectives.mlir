// RUN: nd-opt %s | nd-opt | FileCheck %s
// RUN: nd-opt %s -cse -canonicalize | FileCheck %s --check-prefix=CSE

// CHECK: nd.mesh @mesh axes [#nd.axis<"dp" = 2, replicate>, #nd.axis<"tp" = 2, tensor>]
nd.mesh @mesh axes [#nd.axis<"dp" = 2, replicate>, #nd.axis<"tp" = 2, tensor>]

// CHECK-LABEL: func.func @encodings
// CHECK-SAME: tensor<8x4xf32, #nd.sharding<@mesh, [{"dp"}, {}]>>
// CHECK-SAME: tensor<8x4xf32, #nd.sharding<@mesh, [{"dp", "tp"}, {}]>>
// CHECK-SAME: tensor<4xf32, #nd.sharding<@mesh, [{}], unreduced = sum {"dp"}>>
// CHECK-SAME: tensor<f32, #nd.sharding<@mesh, []>>
func.func @encodings(%a: tensor<8x4xf32, #nd.sharding<@mesh, [{"dp"}, {}]>>,
                     %b: tensor<8x4xf32, #nd.sharding<@mesh, [{"dp", "tp"}, {}]>>,
                     %c: tensor<4xf32, #nd.sharding<@mesh, [{}], unreduced = sum {"dp"}>>,
                     %d: tensor<f32, #nd.sharding<@mesh, []>>)
    -> (tensor<4xf32, #nd.sharding<@mesh, [{}]>>, tensor<4xf32, #nd.sharding<@mesh, [{}], unreduced = sum {"dp"}>>) {
  // CHECK: nd.reshard %{{.*}} instance = 1 name = "c" reason = "why"
  %0 = nd.reshard %c instance = 1 name = "c" reason = "why"
      : tensor<4xf32, #nd.sharding<@mesh, [{}], unreduced = sum {"dp"}>> -> tensor<4xf32, #nd.sharding<@mesh, [{}]>>
  // CHECK: nd.scale
  %1 = nd.scale %c, %d : tensor<4xf32, #nd.sharding<@mesh, [{}], unreduced = sum {"dp"}>>, tensor<f32, #nd.sharding<@mesh, []>>
  return %0, %1 : tensor<4xf32, #nd.sharding<@mesh, [{}]>>, tensor<4xf32, #nd.sharding<@mesh, [{}], unreduced = sum {"dp"}>>
}

// CSE must not merge two collectives of one tensor (they differ by instance); dead ones vanish.
// CHECK-LABEL: func.func @collectives
// CSE-LABEL: func.func @collectives
func.func @collectives(%a: tensor<4xf32>, %b: tensor<2x3xf32>) -> (tensor<4xf32>, tensor<2x3xf32>, tensor<4xf32>, tensor<8xf32>, tensor<2xf32>) {
  // CHECK: nd.all_reduce sum %{{.*}}, %{{.*}} over @mesh ["dp"] instance = 1 names = ["a", "b"] reason = "gradients" : tensor<4xf32>, tensor<2x3xf32>
  // CSE: nd.all_reduce sum
  // CSE: nd.all_reduce sum
  // CSE-NOT: nd.all_reduce
  %0:2 = nd.all_reduce sum %a, %b over @mesh ["dp"] instance = 1 names = ["a", "b"] reason = "gradients" : tensor<4xf32>, tensor<2x3xf32>
  %1:2 = nd.all_reduce sum %a, %b over @mesh ["dp"] instance = 2 names = ["a", "b"] reason = "gradients" : tensor<4xf32>, tensor<2x3xf32>
  %dead = nd.all_reduce max %a over @mesh ["dp", "tp"] instance = 3 names = ["a"] reason = "dead" : tensor<4xf32>
  // CHECK: nd.all_gather %{{.*}} over @mesh ["tp"] dims = [0] instance = 4 names = ["a"] reason = "why" : tensor<4xf32> -> tensor<8xf32>
  %2 = nd.all_gather %a over @mesh ["tp"] dims = [0] instance = 4 names = ["a"] reason = "why" : tensor<4xf32> -> tensor<8xf32>
  // CHECK: nd.reduce_scatter sum %{{.*}} over @mesh ["tp"] dims = [0] instance = 5 names = ["a"] reason = "why" : tensor<4xf32> -> tensor<2xf32>
  %3 = nd.reduce_scatter sum %a over @mesh ["tp"] dims = [0] instance = 5 names = ["a"] reason = "why" : tensor<4xf32> -> tensor<2xf32>
  return %0#0, %0#1, %1#0, %2, %3 : tensor<4xf32>, tensor<2x3xf32>, tensor<4xf32>, tensor<8xf32>, tensor<2xf32>
}
