// RUN: nd-opt %s -nd-verify-sharding -split-input-file | FileCheck %s

// With one kv head a rank, a local reshape does not tell whether kv heads or the heads of their groups are sharded. That the rows
// of a table are whole says that it is the former (Falcon takes keys and values out of a fused product this way).
nd.mesh @mesh axes [#nd.axis<"tp" = 2, tensor>]
// CHECK-LABEL: func.func @rows_of_heads
func.func @rows_of_heads(%x: tensor<3x64xf32> {nd.sharding = #nd.sharding<@mesh, [{}, {"tp"}]>, nd.global_shape = array<i64: 3, 128>})
    -> (tensor<1x3x1x16xf32> {nd.sharding = #nd.sharding<@mesh, [{}, {}, {"tp"}, {}]>, nd.global_shape = array<i64: 1, 3, 2, 16>}) {
  %c = arith.constant dense<2> : tensor<1xi64>
  %0 = nd.reshape %x : tensor<3x64xf32> -> tensor<3x1x4x16xf32>
  %1 = nd.transpose %0 permutation = [2, 0, 1, 3] : tensor<3x1x4x16xf32> -> tensor<4x3x1x16xf32>
  %2 = nd.take %1[%c] : tensor<4x3x1x16xf32>, tensor<1xi64> -> tensor<1x3x1x16xf32>
  return %2 : tensor<1x3x1x16xf32>
}

// -----

// What only the batch has differs from the heads with which it is merged: equal along the major part.
nd.mesh @mesh axes [#nd.axis<"dp" = 2, replicate>]
// CHECK-LABEL: func.func @merged
func.func @merged(%x: tensor<6x4xf32> {nd.sharding = #nd.sharding<@mesh, [{"dp"}, {}]>, nd.global_shape = array<i64: 12, 4>},
                  %slopes: tensor<3xf32> {nd.sharding = #nd.sharding<@mesh, [{}]>, nd.global_shape = array<i64: 3>})
    -> (tensor<6x4xf32> {nd.sharding = #nd.sharding<@mesh, [{"dp"}, {}]>, nd.global_shape = array<i64: 12, 4>}) {
  %0 = nd.broadcast %slopes dims = [1] : tensor<3xf32> -> tensor<2x3x4xf32>
  %1 = nd.reshape %0 : tensor<2x3x4xf32> -> tensor<6x4xf32>
  %2 = nd.reshape %x : tensor<6x4xf32> -> tensor<2x3x4xf32>
  %3 = nd.reshape %1 : tensor<6x4xf32> -> tensor<2x3x4xf32>
  %4 = arith.addf %2, %3 : tensor<2x3x4xf32>
  %5 = nd.reshape %4 : tensor<2x3x4xf32> -> tensor<6x4xf32>
  return %5 : tensor<6x4xf32>
}
