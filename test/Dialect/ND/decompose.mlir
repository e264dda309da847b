// RUN: nd-opt %s --nd-decompose -split-input-file -verify-diagnostics | FileCheck %s

// CHECK-LABEL: func.func @softmax
func.func @softmax(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  // CHECK-NEXT: %[[MAX:.*]] = nd.reduce max %arg0 dims = [1] : tensor<2x3xf32> -> tensor<2xf32>
  // CHECK-NEXT: %[[M:.*]] = nd.broadcast %[[MAX]] dims = [0]
  // CHECK-NEXT: %[[D:.*]] = arith.subf %arg0, %[[M]]
  // CHECK-NEXT: %[[E:.*]] = math.exp %[[D]]
  // CHECK-NEXT: %[[SUM:.*]] = nd.reduce sum %[[E]] dims = [1] : tensor<2x3xf32> -> tensor<2xf32>
  // CHECK-NEXT: %[[S:.*]] = nd.broadcast %[[SUM]] dims = [0]
  // CHECK-NEXT: %[[R:.*]] = arith.divf %[[E]], %[[S]]
  // CHECK-NEXT: return %[[R]]
  %0 = nd.softmax %x dim = 1 : tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

// Whatever the operands are, the definition computes in f32.
// CHECK-LABEL: func.func @low_precision
func.func @low_precision(%x: tensor<2x4xbf16>, %w: tensor<4xbf16>) -> tensor<2x4xbf16> {
  // CHECK-NEXT: arith.extf %arg0 : tensor<2x4xbf16> to tensor<2x4xf32>
  // CHECK-NOT: bf16
  // CHECK: arith.extf %arg1 : tensor<4xbf16> to tensor<4xf32>
  // CHECK-NOT: bf16
  // CHECK: %[[R:.*]] = arith.truncf %{{.*}} : tensor<2x4xf32> to tensor<2x4xbf16>
  // CHECK-NEXT: return %[[R]]
  %0:2 = nd.rms_norm %x, %w eps = 1.0e-5 : tensor<2x4xbf16>, tensor<4xbf16> -> tensor<2xf32>
  return %0#0 : tensor<2x4xbf16>
}

// The variance is the mean of squared deviations: a second pass over the row, not E[x^2] - E[x]^2.
// CHECK-LABEL: func.func @layer_norm
func.func @layer_norm(%x: tensor<2x4xf32>, %w: tensor<4xf32>, %b: tensor<4xf32>) -> (tensor<2x4xf32>, tensor<2xf32>, tensor<2xf32>) {
  // CHECK: %[[SUM:.*]] = nd.reduce sum %arg0 dims = [1]
  // CHECK: %[[MEAN:.*]] = arith.divf %[[SUM]]
  // CHECK: %[[MEANS:.*]] = nd.broadcast %[[MEAN]] dims = [0]
  // CHECK: %[[C:.*]] = arith.subf %arg0, %[[MEANS]]
  // CHECK: %[[SQUARE:.*]] = arith.mulf %[[C]], %[[C]]
  // CHECK: nd.reduce sum %[[SQUARE]] dims = [1]
  // CHECK: %[[ROOT:.*]] = math.sqrt
  // CHECK: %[[RSTD:.*]] = arith.divf %{{.*}}, %[[ROOT]]
  // CHECK: return %{{.*}}, %[[MEAN]], %[[RSTD]]
  %0:3 = nd.layer_norm %x, %w, %b eps = 1.0e-5 : tensor<2x4xf32>, tensor<4xf32>, tensor<4xf32> -> tensor<2xf32>
  return %0#0, %0#1, %0#2 : tensor<2x4xf32>, tensor<2xf32>, tensor<2xf32>
}

// CHECK-LABEL: func.func @rope
func.func @rope(%x: tensor<1x2x3x6xf32>, %c: tensor<1x3x2xf32>, %s: tensor<1x3x2xf32>) -> (tensor<1x2x3x6xf32>, tensor<1x2x3x6xf32>) {
  // CHECK: nd.slice %arg0 starts = [0, 0, 0, 0] strides = [1, 1, 1, 1] : tensor<1x2x3x6xf32> -> tensor<1x2x3x2xf32>
  // CHECK: nd.slice %arg0 starts = [0, 0, 0, 2] strides = [1, 1, 1, 1] : tensor<1x2x3x6xf32> -> tensor<1x2x3x2xf32>
  // CHECK: nd.slice %arg0 starts = [0, 0, 0, 4]
  // CHECK: nd.concat %{{.*}}, %{{.*}}, %{{.*}} dim = 3
  %0 = nd.rope %x, %c, %s : tensor<1x2x3x6xf32>, tensor<1x3x2xf32>
  // CHECK: nd.slice %arg0 starts = [0, 0, 0, 0] strides = [1, 1, 1, 2]
  // CHECK: nd.slice %arg0 starts = [0, 0, 0, 1] strides = [1, 1, 1, 2]
  // CHECK: nd.concat %{{.*}}, %{{.*}} dim = 4 : tensor<1x2x3x2x1xf32>, tensor<1x2x3x2x1xf32> -> tensor<1x2x3x2x2xf32>
  // CHECK: nd.concat %{{.*}}, %{{.*}} dim = 3
  %1 = nd.rope %x, %c, %s interleaved : tensor<1x2x3x6xf32>, tensor<1x3x2xf32>
  return %0, %1 : tensor<1x2x3x6xf32>, tensor<1x2x3x6xf32>
}

// Labels are compared in 32 bits; the label's logit is a reduction of the row, like the maximum and the sum.
// CHECK-LABEL: func.func @cross_entropy
func.func @cross_entropy(%x: tensor<6x11xf32>, %labels: tensor<6xi64>) -> (tensor<6xf32>, tensor<6xf32>) {
  // CHECK: %[[IGNORED:.*]] = arith.cmpi eq, %arg1, %{{.*}} : tensor<6xi64>
  // CHECK: %[[L:.*]] = arith.trunci %arg1 : tensor<6xi64> to tensor<6xi32>
  // CHECK: %[[IOTA:.*]] = nd.iota dim = 1 : tensor<6x11xi32>
  // CHECK: %[[LABELS:.*]] = nd.broadcast %[[L]] dims = [0]
  // CHECK: %[[ONEHOT:.*]] = arith.cmpi eq, %[[IOTA]], %[[LABELS]]
  // CHECK: %[[PICK:.*]] = arith.select %[[ONEHOT]], %arg0, %{{.*}}
  // CHECK: nd.reduce sum %[[PICK]] dims = [1]
  // CHECK: %[[LOSS:.*]] = arith.select %[[IGNORED]]
  // CHECK: return %[[LOSS]]
  %0:2 = nd.softmax_cross_entropy %x, %labels ignore = -100 : tensor<6x11xf32>, tensor<6xi64> -> tensor<6xf32>
  return %0#0, %0#1 : tensor<6xf32>, tensor<6xf32>
}

// The old values are selected: a gradient of NaN leaves no trace in a step that is not applied.
// CHECK-LABEL: func.func @sgd
func.func @sgd(%p: tensor<3xf32>, %g: tensor<3xf32>, %lr: tensor<f32>, %s: tensor<f32>, %apply: tensor<i1>) -> tensor<3xf32> {
  // CHECK: %[[A:.*]] = nd.broadcast %arg4 dims = [] : tensor<i1> -> tensor<3xi1>
  // CHECK: %[[R:.*]] = arith.select %[[A]], %{{.*}}, %arg0
  // CHECK: return %[[R]]
  %0 = nd.sgd %p grad %g scalars %lr, %s, %apply {momentum = 0.0 : f64, weight_decay = 0.0 : f64}
    : tensor<3xf32>, tensor<3xf32>, tensor<f32>, tensor<i1>
  return %0 : tensor<3xf32>
}

// -----

func.func @sharded(%x: tensor<2x3xf32, "sharded">) -> tensor<2x3xf32, "sharded"> {
  // expected-error @below {{'nd.softmax' op cannot be decomposed on sharded tensors; partition the function first}}
  %0 = nd.softmax %x dim = 1 : tensor<2x3xf32, "sharded">
  return %0 : tensor<2x3xf32, "sharded">
}
