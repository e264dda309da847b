// RUN: nd-opt %s -nd-propagate-sharding -split-input-file | FileCheck %s

nd.mesh @mesh axes [#nd.axis<"dp" = 2, replicate>, #nd.axis<"tp" = 4, tensor>]

// Forward through a product, a reshape that merges (the sharding is on the major factor) and one that splits again.
// CHECK-LABEL: func.func @forward
func.func @forward(%x: tensor<4x6x8xf32> {nd.sharding = #nd.sharding<@mesh, [{"dp"}, {}, {}]>},
                   %w: tensor<8x12xf32> {nd.sharding = #nd.sharding<@mesh, [{}, {"tp"}]>}) -> tensor<4x6x4x3xf32> {
  // CHECK: nd.dot_general {{.*}}nd.factor_axes = {{\[\["dp"\], \[\], \["tp"\], \[\]\]}}
  %0 = nd.dot_general %x, %w contract = [2] x [0] : tensor<4x6x8xf32>, tensor<8x12xf32> -> tensor<4x6x12xf32>
  // CHECK: nd.reshape {{.*}}nd.factor_axes = {{\[\["dp"\], \[\], \["tp"\]\]}}
  %1 = nd.reshape %0 : tensor<4x6x12xf32> -> tensor<24x12xf32>
  // CHECK: nd.reshape {{.*}}nd.factor_axes = {{\[\["dp"\], \[\], \["tp"\], \[\]\]}}
  %2 = nd.reshape %1 : tensor<24x12xf32> -> tensor<4x6x4x3xf32>
  return %2 : tensor<4x6x4x3xf32>
}

// -----

nd.mesh @mesh axes [#nd.axis<"dp" = 2, replicate>]

// Backward into a constant and a broadcast; a dimension that nothing reaches stays whole.
// CHECK-LABEL: func.func @backward
func.func @backward(%x: tensor<4x8xf32> {nd.sharding = #nd.sharding<@mesh, [{"dp"}, {}]>},
                    %b: tensor<8xf32> {nd.sharding = #nd.sharding<@mesh, [{}]>}) -> tensor<4x8xf32> {
  // CHECK: arith.constant {nd.factor_axes = {{\[\["dp"\], \[\]\]}}
  %c = arith.constant dense<1.0> : tensor<4x8xf32>
  // CHECK: nd.broadcast {{.*}}nd.factor_axes = {{\[\["dp"\], \[\]\]}}
  %0 = nd.broadcast %b dims = [1] : tensor<8xf32> -> tensor<4x8xf32>
  // CHECK: arith.subf {{.*}}nd.factor_axes = {{\[\["dp"\], \[\]\]}}
  %1 = arith.subf %c, %0 : tensor<4x8xf32>
  %2 = arith.addf %1, %x : tensor<4x8xf32>
  return %2 : tensor<4x8xf32>
}

// -----

nd.mesh @mesh axes [#nd.axis<"dp" = 2, replicate>]

// From an annotated result.
// CHECK-LABEL: func.func @from_result
func.func @from_result(%x: tensor<4xf32> {nd.sharding = #nd.sharding<@mesh, [{}]>})
    -> (tensor<4xf32> {nd.sharding = #nd.sharding<@mesh, [{"dp"}]>}) {
  // CHECK: arith.negf {{.*}}nd.factor_axes = {{\[\["dp"\]\]}}
  %0 = arith.negf %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

nd.mesh @mesh axes [#nd.axis<"dp" = 2, replicate>]

// Two dimensions want one axis: the larger tensor (the batch of activations) has it.
// CHECK-LABEL: func.func @conflict
func.func @conflict(%x: tensor<64x4xf32> {nd.sharding = #nd.sharding<@mesh, [{"dp"}, {}]>},
                    %w: tensor<4x6xf32> {nd.sharding = #nd.sharding<@mesh, [{}, {"dp"}]>}) -> tensor<64x6xf32> {
  // CHECK: nd.dot_general {{.*}}nd.factor_axes = {{\[\["dp"\], \[\], \[\]\]}}
  %0 = nd.dot_general %x, %w contract = [1] x [0] : tensor<64x4xf32>, tensor<4x6xf32> -> tensor<64x6xf32>
  return %0 : tensor<64x6xf32>
}

// -----

nd.mesh @mesh axes [#nd.axis<"dp" = 4, replicate>]

// An axis that does not divide the major factor goes no further: 24 = 6 * 4, and 4 does not divide 6.
// CHECK-LABEL: func.func @does_not_divide
func.func @does_not_divide(%x: tensor<24xf32> {nd.sharding = #nd.sharding<@mesh, [{"dp"}]>}) -> tensor<6x4xf32> {
  // CHECK: nd.reshape {{.*}}nd.factor_axes = {{\[\[\], \[\]\]}}
  %0 = nd.reshape %x : tensor<24xf32> -> tensor<6x4xf32>
  return %0 : tensor<6x4xf32>
}
