// RUN: nd-opt %s --nd-split-parameters -split-input-file | FileCheck %s

// Query, key and value of unequal widths, with a bias. Storage, rank in the user's model and the rest follow.
// CHECK-LABEL: func @qkv
// CHECK-SAME: %[[Q:[a-z0-9]+]]: tensor<4x8xf32> {nd.kind = "weight", nd.name = "w#0", nd.part = {dim = 0 : i64, name = "w", offset = 0 : i64, size = 8 : i64}, nd.rank = 2 : i64, nd.storage = {file = "f"}}
// CHECK-SAME: %[[K:[a-z0-9]+]]: tensor<2x8xf32> {nd.kind = "weight", nd.name = "w#1", nd.part = {dim = 0 : i64, name = "w", offset = 4 : i64, size = 8 : i64}, nd.rank = 2 : i64, nd.storage = {file = "f"}}
// CHECK-SAME: %[[V:[a-z0-9]+]]: tensor<2x8xf32> {{{.*}}nd.name = "w#2", nd.part = {dim = 0 : i64, name = "w", offset = 6 : i64, size = 8 : i64}
// CHECK-SAME: %[[BQ:[a-z0-9]+]]: tensor<4xf32> {nd.kind = "weight", nd.name = "b#0", nd.part = {dim = 0 : i64, name = "b", offset = 0 : i64, size = 8 : i64}, nd.rank = 1 : i64}
// CHECK-SAME: %[[BK:[a-z0-9]+]]: tensor<2xf32>
// CHECK-SAME: %[[BV:[a-z0-9]+]]: tensor<2xf32>
// CHECK-NOT: nd.slice
// CHECK-DAG: %[[PQ:.*]] = nd.dot_general %arg0, %[[Q]] contract = [2] x [1] : tensor<2x3x8xf32>, tensor<4x8xf32> -> tensor<2x3x4xf32>
// CHECK-DAG: %[[RQ:.*]] = nd.broadcast %[[BQ]] dims = [2] : tensor<4xf32> -> tensor<2x3x4xf32>
// CHECK-DAG: %[[SQ:.*]] = arith.addf %[[PQ]], %[[RQ]] : tensor<2x3x4xf32>
// CHECK-DAG: %[[PV:.*]] = nd.dot_general %arg0, %[[V]] contract = [2] x [1] : tensor<2x3x8xf32>, tensor<2x8xf32> -> tensor<2x3x2xf32>
// CHECK-DAG: %[[SV:.*]] = arith.addf %[[PV]]
// CHECK: return %[[SQ]], %{{.*}}, %[[SV]]
func.func @qkv(%x: tensor<2x3x8xf32> {nd.kind = "input", nd.name = "x"},
               %w: tensor<8x8xf32> {nd.kind = "weight", nd.name = "w", nd.storage = {file = "f"}},
               %b: tensor<8xf32> {nd.kind = "weight", nd.name = "b"})
    -> (tensor<2x3x4xf32>, tensor<2x3x2xf32>, tensor<2x3x2xf32>) {
  %0 = nd.dot_general %x, %w contract = [2] x [1] : tensor<2x3x8xf32>, tensor<8x8xf32> -> tensor<2x3x8xf32>
  %1 = nd.broadcast %b dims = [2] : tensor<8xf32> -> tensor<2x3x8xf32>
  %2 = arith.addf %0, %1 : tensor<2x3x8xf32>
  %q = nd.slice %2 starts = [0, 0, 0] strides = [1, 1, 1] : tensor<2x3x8xf32> -> tensor<2x3x4xf32>
  %k = nd.slice %2 starts = [0, 0, 4] strides = [1, 1, 1] : tensor<2x3x8xf32> -> tensor<2x3x2xf32>
  %v = nd.slice %2 starts = [0, 0, 6] strides = [1, 1, 1] : tensor<2x3x8xf32> -> tensor<2x3x2xf32>
  return %q, %k, %v : tensor<2x3x4xf32>, tensor<2x3x2xf32>, tensor<2x3x2xf32>
}

// -----

// Behind a reshape and a transpose, [B, S, 3*E] -> [3, B, S, E], with a number in between; the weight in [in, out] order.
// CHECK-LABEL: func @packed
// CHECK-SAME: %[[W0:[a-z0-9]+]]: tensor<5x4xf32> {nd.kind = "weight", nd.name = "w#0", nd.part = {dim = 1 : i64, name = "w", offset = 0 : i64, size = 12 : i64}
// CHECK-SAME: %[[W1:[a-z0-9]+]]: tensor<5x4xf32>
// CHECK-SAME: %[[W2:[a-z0-9]+]]: tensor<5x4xf32>
// CHECK: %[[P:.*]] = nd.dot_general %arg0, %[[W0]] {{.*}} -> tensor<2x3x4xf32>
// CHECK: %[[R:.*]] = nd.reshape %[[P]] : tensor<2x3x4xf32> -> tensor<2x3x1x4xf32>
// CHECK: %[[T:.*]] = nd.transpose %[[R]] permutation = [2, 0, 1, 3] : tensor<2x3x1x4xf32> -> tensor<1x2x3x4xf32>
// CHECK: arith.mulf %[[T]], %{{.*}} : tensor<1x2x3x4xf32>
func.func @packed(%x: tensor<2x3x5xf32> {nd.kind = "input", nd.name = "x"}, %w: tensor<5x12xf32> {nd.kind = "weight", nd.name = "w"})
    -> (tensor<1x2x3x4xf32>, tensor<2x2x3x4xf32>, tensor<1x2x3x4xf32>) {
  %c = arith.constant dense<0.5> : tensor<3x2x3x4xf32>
  %0 = nd.dot_general %x, %w contract = [2] x [0] : tensor<2x3x5xf32>, tensor<5x12xf32> -> tensor<2x3x12xf32>
  %1 = nd.reshape %0 : tensor<2x3x12xf32> -> tensor<2x3x3x4xf32>
  %2 = nd.transpose %1 permutation = [2, 0, 1, 3] : tensor<2x3x3x4xf32> -> tensor<3x2x3x4xf32>
  %3 = arith.mulf %2, %c : tensor<3x2x3x4xf32>
  %q = nd.slice %3 starts = [0, 0, 0, 0] strides = [1, 1, 1, 1] : tensor<3x2x3x4xf32> -> tensor<1x2x3x4xf32>
  %k = nd.slice %3 starts = [1, 0, 0, 0] strides = [1, 1, 1, 1] : tensor<3x2x3x4xf32> -> tensor<1x2x3x4xf32>
  %v = nd.slice %3 starts = [2, 0, 0, 0] strides = [1, 1, 1, 1] : tensor<3x2x3x4xf32> -> tensor<1x2x3x4xf32>
  %again = nd.slice %3 starts = [2, 0, 0, 0] strides = [1, 1, 1, 1] : tensor<3x2x3x4xf32> -> tensor<1x2x3x4xf32>
  %both = nd.concat %k, %v dim = 0 : tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32> -> tensor<2x2x3x4xf32>
  return %q, %both, %again : tensor<1x2x3x4xf32>, tensor<2x2x3x4xf32>, tensor<1x2x3x4xf32>
}

// -----

// Interleaved per head, [heads, 3*D]: sharding by heads needs no split.
// CHECK-LABEL: func @interleaved
// CHECK-SAME: nd.name = "w"}
// CHECK: nd.dot_general
// CHECK: nd.slice
func.func @interleaved(%x: tensor<2x3x5xf32>, %w: tensor<12x5xf32> {nd.kind = "weight", nd.name = "w"}) -> (tensor<2x3x2x3xf32>, tensor<2x3x2x3xf32>) {
  %0 = nd.dot_general %x, %w contract = [2] x [1] : tensor<2x3x5xf32>, tensor<12x5xf32> -> tensor<2x3x12xf32>
  %1 = nd.reshape %0 : tensor<2x3x12xf32> -> tensor<2x3x2x6xf32>
  %2 = nd.slice %1 starts = [0, 0, 0, 0] strides = [1, 1, 1, 1] : tensor<2x3x2x6xf32> -> tensor<2x3x2x3xf32>
  %3 = nd.slice %1 starts = [0, 0, 0, 3] strides = [1, 1, 1, 1] : tensor<2x3x2x6xf32> -> tensor<2x3x2x3xf32>
  return %2, %3 : tensor<2x3x2x3xf32>, tensor<2x3x2x3xf32>
}

// -----

// What is left over, read as a whole too, or read by another product stays fused.
// CHECK-LABEL: func @stays
// CHECK-SAME: nd.name = "gap"}
// CHECK-SAME: nd.name = "whole"}
// CHECK-SAME: nd.name = "twice"}
func.func @stays(%x: tensor<3x4xf32>, %gap: tensor<4x6xf32> {nd.kind = "weight", nd.name = "gap"},
                 %whole: tensor<4x6xf32> {nd.kind = "weight", nd.name = "whole"}, %twice: tensor<4x6xf32> {nd.kind = "weight", nd.name = "twice"})
    -> (tensor<3x2xf32>, tensor<3x2xf32>, tensor<3x2xf32>, tensor<3x4xf32>, tensor<3x6xf32>, tensor<3x2xf32>, tensor<3x4xf32>, tensor<3x6xf32>) {
  %0 = nd.dot_general %x, %gap contract = [1] x [0] : tensor<3x4xf32>, tensor<4x6xf32> -> tensor<3x6xf32>
  %1 = nd.slice %0 starts = [0, 0] strides = [1, 1] : tensor<3x6xf32> -> tensor<3x2xf32>
  %2 = nd.slice %0 starts = [0, 4] strides = [1, 1] : tensor<3x6xf32> -> tensor<3x2xf32>
  %3 = nd.dot_general %x, %whole contract = [1] x [0] : tensor<3x4xf32>, tensor<4x6xf32> -> tensor<3x6xf32>
  %4 = nd.slice %3 starts = [0, 0] strides = [1, 1] : tensor<3x6xf32> -> tensor<3x2xf32>
  %5 = nd.slice %3 starts = [0, 2] strides = [1, 1] : tensor<3x6xf32> -> tensor<3x4xf32>
  %6 = nd.dot_general %x, %twice contract = [1] x [0] : tensor<3x4xf32>, tensor<4x6xf32> -> tensor<3x6xf32>
  %7 = nd.slice %6 starts = [0, 0] strides = [1, 1] : tensor<3x6xf32> -> tensor<3x2xf32>
  %8 = nd.slice %6 starts = [0, 2] strides = [1, 1] : tensor<3x6xf32> -> tensor<3x4xf32>
  %9 = nd.dot_general %8, %twice contract = [1] x [0] : tensor<3x4xf32>, tensor<4x6xf32> -> tensor<3x6xf32>
  return %1, %2, %4, %5, %3, %7, %8, %9 : tensor<3x2xf32>, tensor<3x2xf32>, tensor<3x2xf32>, tensor<3x4xf32>, tensor<3x6xf32>, tensor<3x2xf32>, tensor<3x4xf32>, tensor<3x6xf32>
}
