// RUN: nd-opt %s -nd-chunk-loss=tokens=4 -split-input-file -verify-diagnostics
// RUN: nd-opt %s -nd-chunk-loss -split-input-file | FileCheck %s --implicit-check-not=nd.chunk

// auto leaves them as they are.
// CHECK-LABEL: @returned
func.func @returned(%x: tensor<8x8xf32>, %w: tensor<32x8xf32>, %labels: tensor<8xi64>) -> (tensor<8xf32>, tensor<8x32xf32>) {
  %logits = nd.dot_general %x, %w contract = [1] x [1] : tensor<8x8xf32>, tensor<32x8xf32> -> tensor<8x32xf32>
  %losses, %lse = nd.softmax_cross_entropy %logits, %labels ignore = -100 : tensor<8x32xf32>, tensor<8xi64> -> tensor<8xf32>
  // expected-error@+1 {{the loss cannot run in chunks of 4 tokens: of the logits, they are a result of the program; use --loss-chunk=off}}
  return %losses, %logits : tensor<8xf32>, tensor<8x32xf32>
}

// -----

// CHECK-LABEL: @argument
// expected-error@+1 {{the loss cannot run in chunks of 4 tokens: of the logits, they are an argument of the program}}
func.func @argument(%logits: tensor<8x32xf32>, %labels: tensor<8xi64>) -> tensor<8xf32> {
  %losses, %lse = nd.softmax_cross_entropy %logits, %labels ignore = -100 : tensor<8x32xf32>, tensor<8xi64> -> tensor<8xf32>
  return %losses : tensor<8xf32>
}

// -----

// A mean over tokens that goes back into the logits.
// CHECK-LABEL: @all_tokens
func.func @all_tokens(%x: tensor<8x8xf32>, %w: tensor<32x8xf32>, %labels: tensor<8xi64>) -> tensor<8xf32> {
  %raw = nd.dot_general %x, %w contract = [1] x [1] : tensor<8x8xf32>, tensor<32x8xf32> -> tensor<8x32xf32>
  %sum = nd.reduce sum %raw dims = [0] : tensor<8x32xf32> -> tensor<32xf32>
  // expected-error@+1 {{the loss cannot run in chunks of 4 tokens: of the logits, 'nd.broadcast' needs a value of all tokens}}
  %same = nd.broadcast %sum dims = [1] : tensor<32xf32> -> tensor<8x32xf32>
  %logits = arith.subf %raw, %same : tensor<8x32xf32>
  %losses, %lse = nd.softmax_cross_entropy %logits, %labels ignore = -100 : tensor<8x32xf32>, tensor<8xi64> -> tensor<8xf32>
  return %losses : tensor<8xf32>
}

// -----

// The same tensor for tokens and for words: a chunk of one is no chunk of the other.
// CHECK-LABEL: @two_parts
func.func @two_parts(%x: tensor<8x4xf32>, %labels: tensor<8xi64>) -> tensor<8xf32> {
  // expected-error@+1 {{the loss cannot run in chunks of 4 tokens: of the logits, 'nd.dot_general' needs a value of all tokens}}
  %logits = nd.dot_general %x, %x contract = [1] x [1] : tensor<8x4xf32>, tensor<8x4xf32> -> tensor<8x8xf32>
  %losses, %lse = nd.softmax_cross_entropy %logits, %labels ignore = -100 : tensor<8x8xf32>, tensor<8xi64> -> tensor<8xf32>
  return %losses : tensor<8xf32>
}
