// RUN: nd-opt %s --nd-unmerge-dimensions -split-input-file | FileCheck %s

// A linear layer as exporters write it: rows are merged before the product and split behind the bias.
// CHECK-LABEL: func @linear
// CHECK-NOT: nd.reshape
// CHECK: %[[P:.*]] = nd.dot_general %arg0, %arg1 contract = [2] x [0] : tensor<2x8x32xf32>, tensor<32x48xf32> -> tensor<2x8x48xf32>
// CHECK: %[[B:.*]] = nd.broadcast %arg2 dims = [2] : tensor<48xf32> -> tensor<2x8x48xf32>
// CHECK: %[[S:.*]] = arith.addf %[[P]], %[[B]]
// CHECK: return %[[S]]
func.func @linear(%x: tensor<2x8x32xf32> {nd.kind = "input"}, %w: tensor<32x48xf32>, %b: tensor<48xf32>) -> tensor<2x8x48xf32> {
  %0 = nd.reshape %x : tensor<2x8x32xf32> -> tensor<16x32xf32>
  %1 = nd.dot_general %0, %w contract = [1] x [0] : tensor<16x32xf32>, tensor<32x48xf32> -> tensor<16x48xf32>
  %2 = nd.broadcast %b dims = [1] : tensor<48xf32> -> tensor<16x48xf32>
  %3 = arith.addf %1, %2 : tensor<16x48xf32>
  %4 = nd.reshape %3 : tensor<16x48xf32> -> tensor<2x8x48xf32>
  return %4 : tensor<2x8x48xf32>
}

// -----

// Heads merge with their width, tokens do not; a constant follows.
// CHECK-LABEL: func @heads
// CHECK: %[[H:.*]] = nd.reshape %arg0 : tensor<2x8x20xf32> -> tensor<2x8x4x5xf32>
// CHECK: %[[S:.*]] = nd.softmax %[[H]] dim = 2
// CHECK: %[[M:.*]] = nd.reshape %[[S]] : tensor<2x8x4x5xf32> -> tensor<2x8x20xf32>
// CHECK: %[[P:.*]] = arith.mulf %[[M]], %{{.*}} : tensor<2x8x20xf32>
// CHECK: %[[D:.*]] = nd.dot_general %[[P]], %arg1 contract = [2] x [1] : tensor<2x8x20xf32>, tensor<6x20xf32> -> tensor<2x8x6xf32>
// CHECK: return %[[D]]
func.func @heads(%x: tensor<2x8x20xf32> {nd.kind = "input"}, %w: tensor<6x20xf32>) -> tensor<2x8x6xf32> {
  %two = arith.constant dense<2.0> : tensor<16x20xf32>
  %0 = nd.reshape %x : tensor<2x8x20xf32> -> tensor<2x8x4x5xf32>
  %s = nd.softmax %0 dim = 2 : tensor<2x8x4x5xf32>
  %1 = nd.reshape %s : tensor<2x8x4x5xf32> -> tensor<16x20xf32>
  %2 = arith.mulf %1, %two : tensor<16x20xf32>
  %3 = nd.dot_general %2, %w contract = [1] x [1] : tensor<16x20xf32>, tensor<6x20xf32> -> tensor<16x6xf32>
  %4 = nd.reshape %3 : tensor<16x6xf32> -> tensor<2x8x6xf32>
  return %4 : tensor<2x8x6xf32>
}

// -----

// Two merges, one of which a weight contracts: that one stays, the other moves on.
// CHECK-LABEL: func @one_of_two
// CHECK: %[[M:.*]] = nd.reshape %arg0 : tensor<2x3x4x5xf32> -> tensor<2x3x20xf32>
// CHECK: nd.dot_general %[[M]], %arg1 contract = [2] x [1] : tensor<2x3x20xf32>, tensor<7x20xf32> -> tensor<2x3x7xf32>
func.func @one_of_two(%x: tensor<2x3x4x5xf32> {nd.kind = "input"}, %w: tensor<7x20xf32>) -> tensor<2x3x7xf32> {
  %0 = nd.reshape %x : tensor<2x3x4x5xf32> -> tensor<6x20xf32>
  %1 = nd.dot_general %0, %w contract = [1] x [1] : tensor<6x20xf32>, tensor<7x20xf32> -> tensor<6x7xf32>
  %2 = nd.reshape %1 : tensor<6x7xf32> -> tensor<2x3x7xf32>
  return %2 : tensor<2x3x7xf32>
}

// -----

// nn.MultiheadAttention keeps the batch minor, [S, B, E], and merges it with rows and with heads.
// CHECK-LABEL: func @batch_minor
// CHECK: %[[T:.*]] = nd.transpose %arg0 permutation = [1, 0, 2]
// CHECK: %[[P:.*]] = nd.dot_general %[[T]], %arg1 contract = [2] x [0] : tensor<8x2x6xf32>, tensor<6x6xf32> -> tensor<8x2x6xf32>
// CHECK: %[[H:.*]] = nd.reshape %[[P]] : tensor<8x2x6xf32> -> tensor<8x2x3x2xf32>
// CHECK: %[[R:.*]] = nd.transpose %[[H]] permutation = [1, 2, 0, 3] : tensor<8x2x3x2xf32> -> tensor<2x3x8x2xf32>
// CHECK: return %[[R]]
func.func @batch_minor(%x: tensor<2x8x6xf32> {nd.kind = "input"}, %w: tensor<6x6xf32>) -> tensor<2x3x8x2xf32> {
  %0 = nd.transpose %x permutation = [1, 0, 2] : tensor<2x8x6xf32> -> tensor<8x2x6xf32>
  %1 = nd.reshape %0 : tensor<8x2x6xf32> -> tensor<16x6xf32>
  %2 = nd.dot_general %1, %w contract = [1] x [0] : tensor<16x6xf32>, tensor<6x6xf32> -> tensor<16x6xf32>
  %3 = nd.reshape %2 : tensor<16x6xf32> -> tensor<8x6x2xf32>
  %4 = nd.transpose %3 permutation = [1, 0, 2] : tensor<8x6x2xf32> -> tensor<6x8x2xf32>
  %5 = nd.reshape %4 : tensor<6x8x2xf32> -> tensor<2x3x8x2xf32>
  return %5 : tensor<2x3x8x2xf32>
}

// -----

// Rows of a table, a norm, softmax along the classes, a cut and a join of features, sums, the loss.
// CHECK-LABEL: func @tokens
// CHECK: %[[T:.*]] = nd.take %arg1[%arg0] : tensor<9x4xf32>, tensor<2x3xi64> -> tensor<2x3x4xf32>
// CHECK: %[[N:.*]], %{{.*}} = nd.rms_norm %[[T]], %arg2 {{.*}} : tensor<2x3x4xf32>, tensor<4xf32> -> tensor<2x3xf32>
// CHECK: %[[S:.*]] = nd.softmax %[[N]] dim = 2 : tensor<2x3x4xf32>
// CHECK: %[[L:.*]] = nd.slice %[[S]] starts = [0, 0, 1] strides = [1, 1, 1] : tensor<2x3x4xf32> -> tensor<2x3x2xf32>
// CHECK: %[[C:.*]] = nd.concat %[[S]], %[[L]] dim = 2 : tensor<2x3x4xf32>, tensor<2x3x2xf32> -> tensor<2x3x6xf32>
// CHECK: %[[E:.*]], %{{.*}} = nd.softmax_cross_entropy %[[C]], %arg0 ignore = -1 : tensor<2x3x6xf32>, tensor<2x3xi64> -> tensor<2x3xf32>
// CHECK: %[[R:.*]] = nd.reduce sum %[[E]] dims = [0, 1] : tensor<2x3xf32> -> tensor<f32>
// CHECK: return %[[R]]
func.func @tokens(%ids: tensor<2x3xi64> {nd.kind = "input"}, %table: tensor<9x4xf32>, %w: tensor<4xf32>) -> tensor<f32> {
  %0 = nd.reshape %ids : tensor<2x3xi64> -> tensor<6xi64>
  %1 = nd.take %table[%0] : tensor<9x4xf32>, tensor<6xi64> -> tensor<6x4xf32>
  %2, %rstd = nd.rms_norm %1, %w eps = 1.0e-5 : tensor<6x4xf32>, tensor<4xf32> -> tensor<6xf32>
  %3 = nd.softmax %2 dim = 1 : tensor<6x4xf32>
  %4 = nd.slice %3 starts = [0, 1] strides = [1, 1] : tensor<6x4xf32> -> tensor<6x2xf32>
  %5 = nd.concat %3, %4 dim = 1 : tensor<6x4xf32>, tensor<6x2xf32> -> tensor<6x6xf32>
  %6, %lse = nd.softmax_cross_entropy %5, %0 ignore = -1 : tensor<6x6xf32>, tensor<6xi64> -> tensor<6xf32>
  %7 = nd.reduce sum %6 dims = [0] : tensor<6xf32> -> tensor<f32>
  return %7 : tensor<f32>
}

// -----

// A cut through the rows needs them merged: the merge stays in front of it. Features that a weight contracts stay too.
// CHECK-LABEL: func @stays
// CHECK: %[[N:.*]] = arith.negf %arg0 : tensor<2x3x4xf32>
// CHECK: %[[M:.*]] = nd.reshape %[[N]] : tensor<2x3x4xf32> -> tensor<6x4xf32>
// CHECK: nd.slice %[[M]] starts = [0, 0] strides = [1, 1] : tensor<6x4xf32> -> tensor<5x4xf32>
// CHECK: %[[F:.*]] = nd.reshape %arg0 : tensor<2x3x4xf32> -> tensor<2x12xf32>
// CHECK: nd.dot_general %[[F]], %arg1 contract = [1] x [0] : tensor<2x12xf32>
func.func @stays(%x: tensor<2x3x4xf32> {nd.kind = "input"}, %w: tensor<12x7xf32>) -> (tensor<5x4xf32>, tensor<2x7xf32>) {
  %0 = nd.reshape %x : tensor<2x3x4xf32> -> tensor<6x4xf32>
  %1 = arith.negf %0 : tensor<6x4xf32>
  %2 = nd.slice %1 starts = [0, 0] strides = [1, 1] : tensor<6x4xf32> -> tensor<5x4xf32>
  %3 = nd.reshape %x : tensor<2x3x4xf32> -> tensor<2x12xf32>
  %4 = nd.dot_general %3, %w contract = [1] x [0] : tensor<2x12xf32>, tensor<12x7xf32> -> tensor<2x7xf32>
  return %2, %4 : tensor<5x4xf32>, tensor<2x7xf32>
}

// -----

// Both operands in parts: a sum over tokens becomes one over batch and sequence.
// CHECK-LABEL: func @both
// CHECK: nd.dot_general %arg0, %arg1 contract = [0, 1] x [0, 1] : tensor<2x3x4xf32>, tensor<2x3x5xf32> -> tensor<4x5xf32>
func.func @both(%x: tensor<2x3x4xf32> {nd.kind = "input"}, %y: tensor<2x3x5xf32> {nd.kind = "input"}) -> tensor<4x5xf32> {
  %0 = nd.reshape %x : tensor<2x3x4xf32> -> tensor<6x4xf32>
  %1 = nd.reshape %y : tensor<2x3x5xf32> -> tensor<6x5xf32>
  %2 = nd.dot_general %0, %1 contract = [0] x [0] : tensor<6x4xf32>, tensor<6x5xf32> -> tensor<4x5xf32>
  return %2 : tensor<4x5xf32>
}

// -----

// Nothing is known to be of tokens: nothing changes.
// CHECK-LABEL: func @weights
// CHECK: nd.reshape %arg0 : tensor<2x3x4xf32> -> tensor<6x4xf32>
// CHECK: nd.dot_general {{.*}} : tensor<6x4xf32>, tensor<4x5xf32> -> tensor<6x5xf32>
func.func @weights(%x: tensor<2x3x4xf32> {nd.kind = "weight"}, %w: tensor<4x5xf32> {nd.kind = "weight"}) -> tensor<6x5xf32> {
  %0 = nd.reshape %x : tensor<2x3x4xf32> -> tensor<6x4xf32>
  %1 = nd.dot_general %0, %w contract = [1] x [0] : tensor<6x4xf32>, tensor<4x5xf32> -> tensor<6x5xf32>
  return %1 : tensor<6x5xf32>
}

// -----

// Positions that the exporter computed, as one list: the list is split, not the rows.
// CHECK-LABEL: func @listed_positions
// CHECK: %[[I:.*]] = nd.reshape %{{.*}} : tensor<4xi64> -> tensor<2x2xi64>
// CHECK: nd.take %arg0[%[[I]]] {padding_idx = 1 : i64} : tensor<9x3xf32>, tensor<2x2xi64> -> tensor<2x2x3xf32>
func.func @listed_positions(%table: tensor<9x3xf32> {nd.kind = "weight"}) -> tensor<2x2x3xf32> {
  %c = arith.constant dense<[0, 1, 0, 1]> : tensor<4xi64>
  %0 = nd.take %table[%c] {padding_idx = 1 : i64} : tensor<9x3xf32>, tensor<4xi64> -> tensor<4x3xf32>
  %1 = nd.reshape %0 : tensor<4x3xf32> -> tensor<2x2x3xf32>
  return %1 : tensor<2x2x3xf32>
}
// -----

// Indices number the rows of a table: the merge in front of it stays.
// CHECK-LABEL: func.func @table
func.func @table(%x: tensor<3x5x8xf32> {nd.kind = "input"}, %i: tensor<3xi64> {nd.kind = "input"}) -> tensor<3x8xf32> {
  // CHECK: nd.reshape %{{.*}} -> tensor<15x8xf32>
  // CHECK: nd.take %{{.*}} : tensor<15x8xf32>, tensor<3xi64> -> tensor<3x8xf32>
  %0 = nd.reshape %x : tensor<3x5x8xf32> -> tensor<15x8xf32>
  %1 = nd.take %0[%i] : tensor<15x8xf32>, tensor<3xi64> -> tensor<3x8xf32>
  return %1 : tensor<3x8xf32>
}

// -----

// A bias of heads that is merged with the batch before it meets scores (alibi): a merge of no tokens, but read beside them.
// CHECK-LABEL: func @bias_of_heads
// CHECK: %[[B:.*]] = nd.reshape %{{.*}} -> tensor<2x3x4xf32>
// CHECK: %[[W:.*]] = nd.broadcast %[[B]] dims = [0, 1, 3] : tensor<2x3x4xf32> -> tensor<2x3x4x4xf32>
// CHECK: arith.addf %arg0, %[[W]] : tensor<2x3x4x4xf32>
func.func @bias_of_heads(%scores: tensor<2x3x4x4xf32> {nd.kind = "input"}, %alibi: tensor<2x3x1x4xf32>) -> tensor<2x3x4x4xf32> {
  %0 = nd.reshape %scores : tensor<2x3x4x4xf32> -> tensor<6x4x4xf32>
  %1 = nd.reshape %alibi : tensor<2x3x1x4xf32> -> tensor<6x4xf32>
  %2 = nd.broadcast %1 dims = [0, 2] : tensor<6x4xf32> -> tensor<6x4x4xf32>
  %3 = arith.addf %0, %2 : tensor<6x4x4xf32>
  %4 = nd.reshape %3 : tensor<6x4x4xf32> -> tensor<2x3x4x4xf32>
  return %4 : tensor<2x3x4x4xf32>
}
