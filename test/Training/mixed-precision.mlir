// RUN: nd-opt %s --nd-mixed-precision --canonicalize --cse -split-input-file | FileCheck %s

// A block of a transformer: one conversion of each weight, bf16 in memory, the residual stream rounded once.
// CHECK-LABEL: func.func @forward(
// CHECK-SAME: %[[X:arg.]]: tensor<2x4x8xf32>
// CHECK-SAME: %[[G:arg.]]: tensor<8xf32>
// CHECK-SAME: %[[W:arg.]]: tensor<8x8xf32>
// CHECK-SAME: %[[B:arg.]]: tensor<8xf32>
// CHECK-SAME: -> (tensor<2x4x8xf32> {nd.kind = "logits"})
func.func @forward(%x: tensor<2x4x8xf32> {nd.kind = "input", nd.name = "x"},
                   %g: tensor<8xf32> {nd.kind = "weight", nd.name = "g"},
                   %w: tensor<8x8xf32> {nd.kind = "weight", nd.name = "w"},
                   %b: tensor<8xf32> {nd.kind = "weight", nd.name = "b"}) -> (tensor<2x4x8xf32> {nd.kind = "logits"}) {
  // CHECK: %[[XN:.*]] = arith.truncf %[[X]] : tensor<2x4x8xf32> to tensor<2x4x8xbf16>
  // CHECK: %[[GN:.*]] = arith.truncf %[[G]] : tensor<8xf32> to tensor<8xbf16>
  // CHECK: %[[N:.*]], %{{.*}} = nd.rms_norm %[[XN]], %[[GN]] {{.*}} : tensor<2x4x8xbf16>, tensor<8xbf16> -> tensor<2x4xf32>
  %n, %rstd = nd.rms_norm %x, %g eps = 1.0e-5 : tensor<2x4x8xf32>, tensor<8xf32> -> tensor<2x4xf32>
  // CHECK: %[[WN:.*]] = arith.truncf %[[W]]
  // CHECK: %[[P:.*]] = nd.dot_general %[[N]], %[[WN]] {{.*}} : tensor<2x4x8xbf16>, tensor<8x8xbf16> -> tensor<2x4x8xbf16>
  %p = nd.dot_general %n, %w contract = [2] x [0] : tensor<2x4x8xf32>, tensor<8x8xf32> -> tensor<2x4x8xf32>
  // CHECK: %[[BN:.*]] = arith.truncf %[[B]]
  // CHECK: %[[BF:.*]] = arith.extf %[[BN]]
  // CHECK: %[[ROW:.*]] = nd.broadcast %[[BF]] dims = [2] : tensor<8xf32> -> tensor<2x4x8xf32>
  // CHECK: %[[PF:.*]] = arith.extf %[[P]]
  // CHECK: %[[H:.*]] = arith.addf %[[PF]], %[[ROW]] : tensor<2x4x8xf32>
  // CHECK: %[[HN:.*]] = arith.truncf %[[H]]
  %row = nd.broadcast %b dims = [2] : tensor<8xf32> -> tensor<2x4x8xf32>
  %h = arith.addf %p, %row : tensor<2x4x8xf32>
  // An activation is f32 from the rounded product on, and rounded for the next.
  // CHECK: %[[HF:.*]] = arith.extf %[[HN]]
  // CHECK: %[[T:.*]] = math.tanh %[[HF]] : tensor<2x4x8xf32>
  // CHECK: %[[A:.*]] = arith.mulf %[[HF]], %[[T]] : tensor<2x4x8xf32>
  // CHECK: %[[AN:.*]] = arith.truncf %[[A]]
  %t = math.tanh %h : tensor<2x4x8xf32>
  %a = arith.mulf %h, %t : tensor<2x4x8xf32>
  // CHECK: nd.dot_general %[[AN]], %[[WN]] {{.*}} -> tensor<2x4x8xbf16>
  %q = nd.dot_general %a, %w contract = [2] x [0] : tensor<2x4x8xf32>, tensor<8x8xf32> -> tensor<2x4x8xf32>
  // The sum is not read in bf16.
  // CHECK: %[[S:.*]] = arith.addf %{{.*}}, %{{.*}} : tensor<2x4x8xf32>
  // CHECK-NEXT: return %[[S]]
  %s = arith.addf %x, %q : tensor<2x4x8xf32>
  return %s : tensor<2x4x8xf32>
}

// -----

// What no weight is part of stays f32, as do a rotation's tables; a frozen table is gathered as it is.
// CHECK-LABEL: func.func @forward(
func.func @forward(%ids: tensor<2x4xi64> {nd.kind = "input", nd.name = "input_ids"},
                   %p: tensor<2x4x1xf32> {nd.kind = "input", nd.name = "p"},
                   %e: tensor<16x8xf32> {nd.kind = "weight", nd.name = "e"},
                   %f: tensor<16x4xf32> {nd.kind = "weight", nd.name = "f", nd.trainable = false})
    -> (tensor<2x1x4x8xf32> {nd.kind = "output"}, tensor<2x4x4xf32> {nd.kind = "output"}) {
  %inv = arith.constant dense<[[1.0, 0.5, 0.25, 0.125]]> : tensor<1x4xf32>
  // CHECK: %[[ANGLES:.*]] = nd.dot_general {{.*}} : tensor<2x4x1xf32>, tensor<1x4xf32> -> tensor<2x4x4xf32>
  %angles = nd.dot_general %p, %inv contract = [2] x [0] : tensor<2x4x1xf32>, tensor<1x4xf32> -> tensor<2x4x4xf32>
  %cos = math.cos %angles : tensor<2x4x4xf32>
  %sin = math.sin %angles : tensor<2x4x4xf32>
  // CHECK: %[[EN:.*]] = arith.truncf %{{.*}} : tensor<16x8xf32> to tensor<16x8xbf16>
  // CHECK: %[[X:.*]] = nd.take %[[EN]]{{.*}} -> tensor<2x4x8xbf16>
  %x = nd.take %e[%ids] : tensor<16x8xf32>, tensor<2x4xi64> -> tensor<2x4x8xf32>
  %h = nd.reshape %x : tensor<2x4x8xf32> -> tensor<2x1x4x8xf32>
  // CHECK: nd.rope %{{.*}} : tensor<2x1x4x8xbf16>, tensor<2x4x4xf32>
  %r = nd.rope %h, %cos, %sin : tensor<2x1x4x8xf32>, tensor<2x4x4xf32>
  // CHECK: nd.take %{{.*}} : tensor<16x4xf32>, tensor<2x4xi64> -> tensor<2x4x4xf32>
  %t = nd.take %f[%ids] : tensor<16x4xf32>, tensor<2x4xi64> -> tensor<2x4x4xf32>
  return %r, %t : tensor<2x1x4x8xf32>, tensor<2x4x4xf32>
}

// -----

// Logits go into the cross-entropy as they come; softmax and sums are f32.
// CHECK-LABEL: func.func @forward(
func.func @forward(%x: tensor<4x8xf32> {nd.kind = "input", nd.name = "x"},
                   %w: tensor<8x8xf32> {nd.kind = "weight", nd.name = "w"},
                   %labels: tensor<4xi64> {nd.kind = "input", nd.name = "labels"})
    -> (tensor<f32> {nd.kind = "loss_sum"}, tensor<4x8xf32> {nd.kind = "output"}) {
  // CHECK: %[[L:.*]] = nd.dot_general {{.*}} -> tensor<4x8xbf16>
  %l = nd.dot_general %x, %w contract = [1] x [0] : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  // CHECK: %[[LOSSES:.*]], %{{.*}} = nd.softmax_cross_entropy %[[L]], {{.*}} : tensor<4x8xbf16>, tensor<4xi64> -> tensor<4xf32>
  %losses, %lse = nd.softmax_cross_entropy %l, %labels ignore = -100 : tensor<4x8xf32>, tensor<4xi64> -> tensor<4xf32>
  // CHECK: nd.reduce sum %[[LOSSES]] {{.*}} : tensor<4xf32> -> tensor<f32>
  %sum = nd.reduce sum %losses dims = [0] : tensor<4xf32> -> tensor<f32>
  // CHECK: %[[LF:.*]] = arith.extf %[[L]]
  // CHECK: nd.softmax %[[LF]] dim = 1 : tensor<4x8xf32>
  %s = nd.softmax %l dim = 1 : tensor<4x8xf32>
  return %sum, %s : tensor<f32>, tensor<4x8xf32>
}

// -----

// A conversion that the user wrote keeps its type.
// CHECK-LABEL: func.func @forward(
func.func @forward(%x: tensor<4x8xf32> {nd.kind = "input", nd.name = "x"},
                   %w: tensor<8x8xf32> {nd.kind = "weight", nd.name = "w"}) -> (tensor<4x8xf16> {nd.kind = "output"}) {
  // CHECK: arith.truncf %{{.*}} : tensor<4x8xf32> to tensor<4x8xf16>
  // CHECK: nd.dot_general {{.*}} : tensor<4x8xf16>, tensor<8x8xf16> -> tensor<4x8xf16>
  %xh = arith.truncf %x : tensor<4x8xf32> to tensor<4x8xf16>
  %wh = arith.truncf %w : tensor<8x8xf32> to tensor<8x8xf16>
  %y = nd.dot_general %xh, %wh contract = [1] x [0] : tensor<4x8xf16>, tensor<8x8xf16> -> tensor<4x8xf16>
  return %y : tensor<4x8xf16>
}
