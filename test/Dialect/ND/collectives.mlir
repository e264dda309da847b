// RUN: nd-opt %s | nd-opt | FileCheck %s
// RUN: nd-opt %s -cse -canonicalize | FileCheck %s --check-prefix=CSE

// CHECK: nd.mesh @mesh axes [#nd.axis<"dp" = 2, replicate>, #nd.axis<"tp" = 2, tensor>]
nd.mesh @mesh axes [#nd.axis<"dp" = 2, replicate>, #nd.axis<"tp" = 2, tensor>]

// CHECK: nd.mesh @nodes axes [#nd.axis<"dp" = 4, replicate>] nodes 2{{$}}
nd.mesh @nodes axes [#nd.axis<"dp" = 4, replicate>] nodes 2

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

// CHECK-LABEL: func.func @of_several_kinds
func.func @of_several_kinds(%a: tensor<4x8xf32>, %b: tensor<2xf32>) -> (tensor<8x8xf32>, tensor<4xf32>, tensor<4x4xf32>, tensor<2xf32>, tensor<2x16xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x2xf32>) {
  // CHECK: nd.all_gather %{{.*}}, %{{.*}} over @mesh ["tp"] dims = [0, 0] instance = 1 names = ["a", "b"] reason = "r" : tensor<4x8xf32>, tensor<2xf32> -> tensor<8x8xf32>, tensor<4xf32>
  %0:2 = nd.all_gather %a, %b over @mesh ["tp"] dims = [0, 0] instance = 1 names = ["a", "b"] reason = "r" : tensor<4x8xf32>, tensor<2xf32> -> tensor<8x8xf32>, tensor<4xf32>
  // CHECK: nd.reduce_scatter max %{{.*}} dims = [1] instance = 2 names = ["a"] reason = "r" : tensor<4x8xf32> -> tensor<4x4xf32>
  %1 = nd.reduce_scatter max %a over @mesh ["tp"] dims = [1] instance = 2 names = ["a"] reason = "r" : tensor<4x8xf32> -> tensor<4x4xf32>
  // CHECK: nd.all_to_all %{{.*}} over @mesh ["tp"] split_dim = 0 concat_dim = 1 instance = 3 name = "a" reason = "r" : tensor<4x8xf32> -> tensor<2x16xf32>
  %2 = nd.all_to_all %a over @mesh ["tp"] split_dim = 0 concat_dim = 1 instance = 3 name = "a" reason = "r" : tensor<4x8xf32> -> tensor<2x16xf32>
  // CHECK: nd.permute %{{.*}} over @mesh ["dp", "tp"] sources = [3, 0, 1, 2] instance = 4 name = "a" reason = "ring" : tensor<4x8xf32>
  %3 = nd.permute %a over @mesh ["dp", "tp"] sources = [3, 0, 1, 2] instance = 4 name = "a" reason = "ring" : tensor<4x8xf32>
  // CHECK: nd.permute %{{.*}} sources = [0, 2, 1, 3] before = <@mesh, [{"dp"}, {}]> after = <@mesh, [{"tp"}, {}]> instance = 5
  %4 = nd.permute %a over @mesh ["dp", "tp"] sources = [0, 2, 1, 3] before = <@mesh, [{"dp"}, {}]> after = <@mesh, [{"tp"}, {}]> instance = 5 name = "a" reason = "r" : tensor<4x8xf32>
  // CHECK: nd.all_slice %{{.*}} over @mesh ["tp", "dp"] dim = 1 instance = 6 name = "a" reason = "r" : tensor<4x8xf32> -> tensor<4x2xf32>
  %5 = nd.all_slice %a over @mesh ["tp", "dp"] dim = 1 instance = 6 name = "a" reason = "r" : tensor<4x8xf32> -> tensor<4x2xf32>
  return %0#0, %0#1, %1, %b, %2, %3, %4, %5 : tensor<8x8xf32>, tensor<4xf32>, tensor<4x4xf32>, tensor<2xf32>, tensor<2x16xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x2xf32>
}
