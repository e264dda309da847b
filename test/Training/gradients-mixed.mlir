// RUN: nd-opt %s --nd-build-backward --canonicalize --cse -split-input-file | FileCheck %s

// The gradient of a rounded weight leaves its product in f32, that of its bias its sum; activations' are bf16.
// CHECK-LABEL: func.func @forward(
func.func @forward(%x: tensor<4x8xbf16> {nd.kind = "input", nd.name = "x"},
                   %w: tensor<8x8xf32> {nd.kind = "weight", nd.name = "w"},
                   %b: tensor<8xf32> {nd.kind = "weight", nd.name = "b"}, %count: tensor<i64>)
    -> (tensor<f32> {nd.kind = "loss_sum"}, tensor<i64> {nd.kind = "loss_count"}) {
  %wn = arith.truncf %w : tensor<8x8xf32> to tensor<8x8xbf16>
  %bn = arith.truncf %b : tensor<8xf32> to tensor<8xbf16>
  %h = nd.dot_general %x, %wn contract = [1] x [0] : tensor<4x8xbf16>, tensor<8x8xbf16> -> tensor<4x8xbf16>
  %hf = arith.extf %h : tensor<4x8xbf16> to tensor<4x8xf32>
  %bf = arith.extf %bn : tensor<8xbf16> to tensor<8xf32>
  %row = nd.broadcast %bf dims = [1] : tensor<8xf32> -> tensor<4x8xf32>
  %a = arith.addf %hf, %row : tensor<4x8xf32>
  %an = arith.truncf %a : tensor<4x8xf32> to tensor<4x8xbf16>
  %y = nd.dot_general %an, %wn contract = [1] x [1] : tensor<4x8xbf16>, tensor<8x8xbf16> -> tensor<4x8xbf16>
  %yf = arith.extf %y : tensor<4x8xbf16> to tensor<4x8xf32>
  %s = nd.reduce sum %yf dims = [0, 1] : tensor<4x8xf32> -> tensor<f32>
  // CHECK: %[[DY:.*]] = arith.truncf %{{.*}} : tensor<4x8xf32> to tensor<4x8xbf16>
  // CHECK: %[[DY:.*]] = arith.truncf %{{.*}} : tensor<4x8xf32> to tensor<4x8xbf16>
  // CHECK: %[[DA:.*]] = nd.dot_general %[[DY]], {{.*}} : tensor<4x8xbf16>, tensor<8x8xbf16> -> tensor<4x8xbf16>
  // CHECK: %[[DW2:.*]] = nd.dot_general {{.*}} : tensor<4x8xbf16>, tensor<4x8xbf16> -> tensor<8x8xf32>
  // CHECK: %[[DAF:.*]] = arith.extf %[[DA]]
  // CHECK: %[[DB:.*]] = nd.reduce sum %[[DAF]] dims = [0] : tensor<4x8xf32> -> tensor<8xf32>
  // CHECK: %[[DW1:.*]] = nd.dot_general {{.*}}%[[DA]]{{.*}} -> tensor<8x8xf32>
  // CHECK: %[[DW:.*]] = arith.addf %[[DW2]], %[[DW1]] : tensor<8x8xf32>
  // CHECK: return %{{.*}}, %{{.*}}, %[[DW]], %[[DB]]
  return %s, %count : tensor<f32>, tensor<i64>
}

// -----

// Views of a rounded weight, norms and gathers: summed in f32 and never rounded.
// CHECK-LABEL: func.func @forward(
func.func @forward(%ids: tensor<4xi64> {nd.kind = "input", nd.name = "ids"},
                   %e: tensor<16x8xf32> {nd.kind = "weight", nd.name = "e"},
                   %g: tensor<8xf32> {nd.kind = "weight", nd.name = "g"},
                   %w: tensor<16x8xf32> {nd.kind = "weight", nd.name = "w"}, %count: tensor<i64>)
    -> (tensor<f32> {nd.kind = "loss_sum"}, tensor<i64> {nd.kind = "loss_count"}) {
  %en = arith.truncf %e : tensor<16x8xf32> to tensor<16x8xbf16>
  %gn = arith.truncf %g : tensor<8xf32> to tensor<8xbf16>
  %wn = arith.truncf %w : tensor<16x8xf32> to tensor<16x8xbf16>
  %x = nd.take %en[%ids] : tensor<16x8xbf16>, tensor<4xi64> -> tensor<4x8xbf16>
  %n, %rstd = nd.rms_norm %x, %gn eps = 1.0e-5 : tensor<4x8xbf16>, tensor<8xbf16> -> tensor<4xf32>
  %part = nd.slice %wn starts = [0, 0] strides = [1, 1] : tensor<16x8xbf16> -> tensor<8x8xbf16>
  %t = nd.transpose %part permutation = [1, 0] : tensor<8x8xbf16> -> tensor<8x8xbf16>
  %y = nd.dot_general %n, %t contract = [1] x [0] : tensor<4x8xbf16>, tensor<8x8xbf16> -> tensor<4x8xbf16>
  %yf = arith.extf %y : tensor<4x8xbf16> to tensor<4x8xf32>
  %s = nd.reduce sum %yf dims = [0, 1] : tensor<4x8xf32> -> tensor<f32>
  // CHECK: nd.dot_general {{.*}} -> tensor<8x8xf32>
  // CHECK: nd.pad {{.*}} : tensor<8x8xf32>{{.*}} -> tensor<16x8xf32>
  // CHECK: nd.reduce sum {{.*}} dims = [0] : tensor<4x8xf32> -> tensor<8xf32>
  // CHECK: nd.scatter_add {{.*}} : tensor<4xi64>, tensor<4x8xf32> -> tensor<16x8xf32>
  // CHECK-NOT: to tensor<16x8xf32>
  return %s, %count : tensor<f32>, tensor<i64>
}
