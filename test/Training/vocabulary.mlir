// RUN: nd-opt %s -nd-add-loss | FileCheck %s

// Which weights have the vocabulary, and where: by what computes the logits, not by sizes.
// CHECK-LABEL: func.func @forward
// CHECK-SAME: nd.name = "table", nd.vocabulary = 0 : i64}
// CHECK-SAME: nd.name = "up"}
// CHECK-SAME: nd.name = "head", nd.vocabulary = 1 : i64}
// CHECK-SAME: nd.name = "bias", nd.vocabulary = 0 : i64}
// CHECK-SAME: nd.name = "places"}
func.func @forward(%ids: tensor<4x6xi64> {nd.kind = "input", nd.name = "input_ids"},
                   %table: tensor<16x8xf32> {nd.kind = "weight", nd.name = "table"},
                   %up: tensor<16x8xf32> {nd.kind = "weight", nd.name = "up"},
                   %head: tensor<16x16xf32> {nd.kind = "weight", nd.name = "head"},
                   %bias: tensor<16xf32> {nd.kind = "weight", nd.name = "bias"},
                   %places: tensor<20x8xf32> {nd.kind = "weight", nd.name = "places"}) -> (tensor<4x6x16xf32> {nd.kind = "logits"}) {
  %word = nd.take %table[%ids] : tensor<16x8xf32>, tensor<4x6xi64> -> tensor<4x6x8xf32>
  %place = nd.take %places[%ids] : tensor<20x8xf32>, tensor<4x6xi64> -> tensor<4x6x8xf32>
  %x = arith.addf %word, %place : tensor<4x6x8xf32>
  %h = nd.dot_general %x, %up contract = [2] x [1] : tensor<4x6x8xf32>, tensor<16x8xf32> -> tensor<4x6x16xf32>
  %turned = nd.transpose %head permutation = [1, 0] : tensor<16x16xf32> -> tensor<16x16xf32>
  %p = nd.dot_general %h, %turned contract = [2] x [1] : tensor<4x6x16xf32>, tensor<16x16xf32> -> tensor<4x6x16xf32>
  %b = nd.broadcast %bias dims = [2] : tensor<16xf32> -> tensor<4x6x16xf32>
  %logits = arith.addf %p, %b : tensor<4x6x16xf32>
  return %logits : tensor<4x6x16xf32>
}
