// RUN: nd-opt %s --nd-build-backward --canonicalize --cse -split-input-file | FileCheck %s

// From the saved mean and rstd: rstd (wg - mean(wg) - xhat mean(wg xhat)) with wg = w g; sums over rows for weight and bias.
// CHECK-LABEL: func.func @forward
// CHECK-SAME: %[[X:[^:]*]]: tensor<2x3x4xf32>
// CHECK-SAME: %[[W:[^:]*]]: tensor<4xf32>
func.func @forward(%x: tensor<2x3x4xf32> {nd.kind = "weight", nd.name = "x"}, %w: tensor<4xf32> {nd.kind = "weight", nd.name = "w"},
    %b: tensor<4xf32> {nd.kind = "weight", nd.name = "b"}, %g: tensor<2x3x4xf32>, %count: tensor<i64>)
    -> (tensor<f32> {nd.kind = "loss_sum"}, tensor<i64> {nd.kind = "loss_count"}) {
  // CHECK-DAG: %[[WIDTH:.*]] = arith.constant dense<4.000000e+00> : tensor<2x3xf32>
  // CHECK: %{{.*}}, %[[MEAN:.*]], %[[RSTD:.*]] = nd.layer_norm
  // CHECK: %[[SEED:.*]] = nd.broadcast %{{.*}} dims = []
  // CHECK: %[[G:.*]] = arith.mulf %[[SEED]]
  // CHECK: %[[WIDERSTD:.*]] = nd.broadcast %[[RSTD]] dims = [0, 1]
  // CHECK: %[[WIDEMEAN:.*]] = nd.broadcast %[[MEAN]] dims = [0, 1]
  // CHECK: %[[CENTERED:.*]] = arith.subf %[[X]], %[[WIDEMEAN]]
  // CHECK: %[[XHAT:.*]] = arith.mulf %[[CENTERED]], %[[WIDERSTD]]
  // CHECK: %[[WIDEW:.*]] = nd.broadcast %[[W]] dims = [2]
  // CHECK: %[[WG:.*]] = arith.mulf %[[G]], %[[WIDEW]]
  // CHECK: %[[WGX:.*]] = arith.mulf %[[WG]], %[[XHAT]]
  // CHECK: %[[S2:.*]] = nd.reduce sum %[[WGX]] dims = [2]
  // CHECK: %[[M2:.*]] = arith.divf %[[S2]], %[[WIDTH]]
  // CHECK: %[[WIDEM2:.*]] = nd.broadcast %[[M2]] dims = [0, 1]
  // CHECK: %[[PROJECTED:.*]] = arith.mulf %[[XHAT]], %[[WIDEM2]]
  // CHECK: %[[S1:.*]] = nd.reduce sum %[[WG]] dims = [2]
  // CHECK: %[[M1:.*]] = arith.divf %[[S1]], %[[WIDTH]]
  // CHECK: %[[WIDEM1:.*]] = nd.broadcast %[[M1]] dims = [0, 1]
  // CHECK: %[[D1:.*]] = arith.subf %[[WG]], %[[WIDEM1]]
  // CHECK: %[[D2:.*]] = arith.subf %[[D1]], %[[PROJECTED]]
  // CHECK: %[[DX:.*]] = arith.mulf %[[WIDERSTD]], %[[D2]]
  // CHECK: %[[GX:.*]] = arith.mulf %[[G]], %[[XHAT]]
  // CHECK: %[[DW:.*]] = nd.reduce sum %[[GX]] dims = [0, 1]
  // CHECK: %[[DB:.*]] = nd.reduce sum %[[G]] dims = [0, 1]
  // CHECK: return %{{.*}}, %{{.*}}, %[[DX]], %[[DW]], %[[DB]]
  %0, %1, %2 = nd.layer_norm %x, %w, %b eps = 1.0e-5 : tensor<2x3x4xf32>, tensor<4xf32>, tensor<4xf32> -> tensor<2x3xf32>
  %3 = arith.mulf %0, %g : tensor<2x3x4xf32>
  %4 = nd.reduce sum %3 dims = [0, 1, 2] : tensor<2x3x4xf32> -> tensor<f32>
  return %4, %count : tensor<f32>, tensor<i64>
}

// -----

// Nothing was centered, and there is no weight.
// CHECK-LABEL: func.func @forward
// CHECK-SAME: %[[X:[^:]*]]: tensor<3x4xf32>
func.func @forward(%x: tensor<3x4xf32> {nd.kind = "weight", nd.name = "x"}, %g: tensor<3x4xf32>, %count: tensor<i64>)
    -> (tensor<f32> {nd.kind = "loss_sum"}, tensor<i64> {nd.kind = "loss_count"}) {
  // CHECK: %{{.*}}, %[[RSTD:.*]] = nd.rms_norm
  // CHECK: %[[SEED:.*]] = nd.broadcast %{{.*}} dims = []
  // CHECK: %[[G:.*]] = arith.mulf %[[SEED]]
  // CHECK: %[[WIDE:.*]] = nd.broadcast %[[RSTD]] dims = [0]
  // CHECK: %[[XHAT:.*]] = arith.mulf %[[X]], %[[WIDE]]
  // CHECK: %[[GX:.*]] = arith.mulf %[[G]], %[[XHAT]]
  // CHECK: nd.reduce sum %[[GX]] dims = [1]
  // CHECK: %[[PROJECTED:.*]] = arith.mulf %[[XHAT]]
  // CHECK: %[[D:.*]] = arith.subf %[[G]], %[[PROJECTED]]
  // CHECK: arith.mulf %[[WIDE]], %[[D]]
  %0, %1 = nd.rms_norm %x eps = 1.0e-6 : tensor<3x4xf32> -> tensor<3xf32>
  %2 = arith.mulf %0, %g : tensor<3x4xf32>
  %3 = nd.reduce sum %2 dims = [0, 1] : tensor<3x4xf32> -> tensor<f32>
  return %3, %count : tensor<f32>, tensor<i64>
}

// -----

// y (g - sum(g y))
// CHECK-LABEL: func.func @forward
func.func @forward(%x: tensor<3x4xf32> {nd.kind = "weight", nd.name = "x"}, %g: tensor<3x4xf32>, %count: tensor<i64>)
    -> (tensor<f32> {nd.kind = "loss_sum"}, tensor<i64> {nd.kind = "loss_count"}) {
  // CHECK: %[[Y:.*]] = nd.softmax
  // CHECK: %[[SEED:.*]] = nd.broadcast %{{.*}} dims = []
  // CHECK: %[[G:.*]] = arith.mulf %[[SEED]]
  // CHECK: %[[GY:.*]] = arith.mulf %[[G]], %[[Y]]
  // CHECK: %[[SUM:.*]] = nd.reduce sum %[[GY]] dims = [0]
  // CHECK: %[[WIDE:.*]] = nd.broadcast %[[SUM]] dims = [1]
  // CHECK: %[[D:.*]] = arith.subf %[[G]], %[[WIDE]]
  // CHECK: arith.mulf %[[Y]], %[[D]]
  %0 = nd.softmax %x dim = 0 : tensor<3x4xf32>
  %1 = arith.mulf %0, %g : tensor<3x4xf32>
  %2 = nd.reduce sum %1 dims = [0, 1] : tensor<3x4xf32> -> tensor<f32>
  return %2, %count : tensor<f32>, tensor<i64>
}
