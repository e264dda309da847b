// RUN: nd-opt %s -split-input-file -nd-recover-composites | FileCheck %s

// CHECK-LABEL: func @weighted
// CHECK-SAME: %[[X:.*]]: tensor<2x3x4xf32>, %[[W:.*]]: tensor<4xf32>
// CHECK: %[[N:.*]], %{{.*}} = nd.rms_norm %[[X]], %[[W]] eps = {{9.99.*E-7|1.0.*e-06}}
// CHECK-NEXT: return %[[N]]
func.func @weighted(%x: tensor<2x3x4xf32>, %w: tensor<4xf32>) -> tensor<2x3x4xf32> {
  %four = arith.constant dense<4.0> : tensor<2x3x1xf32>
  %eps = arith.constant dense<1.0e-6> : tensor<2x3x1xf32>
  %one = arith.constant dense<1.0> : tensor<2x3x1xf32>
  %square = arith.mulf %x, %x : tensor<2x3x4xf32>
  %sum = nd.reduce sum %square dims = [2] : tensor<2x3x4xf32> -> tensor<2x3xf32>
  %kept = nd.reshape %sum : tensor<2x3xf32> -> tensor<2x3x1xf32>
  %mean = arith.divf %kept, %four : tensor<2x3x1xf32>
  %safe = arith.addf %mean, %eps : tensor<2x3x1xf32>
  %root = math.sqrt %safe : tensor<2x3x1xf32>
  %rstd = arith.divf %one, %root : tensor<2x3x1xf32>
  %row = nd.reshape %rstd : tensor<2x3x1xf32> -> tensor<2x3xf32>
  %wide = nd.broadcast %row dims = [0, 1] : tensor<2x3xf32> -> tensor<2x3x4xf32>
  %normed = arith.mulf %x, %wide : tensor<2x3x4xf32>
  %weight = nd.broadcast %w dims = [2] : tensor<4xf32> -> tensor<2x3x4xf32>
  %y = arith.mulf %weight, %normed : tensor<2x3x4xf32>
  return %y : tensor<2x3x4xf32>
}

// -----

// x / root, no weight.
// CHECK-LABEL: func @divided
// CHECK: nd.rms_norm %{{.*}} eps = 5.000000e-01 : tensor<3x4xf32> -> tensor<3xf32>
// CHECK-NOT: math.sqrt
func.func @divided(%x: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %quarter = arith.constant dense<0.25> : tensor<3xf32>
  %eps = arith.constant dense<0.5> : tensor<3xf32>
  %square = arith.mulf %x, %x : tensor<3x4xf32>
  %sum = nd.reduce sum %square dims = [1] : tensor<3x4xf32> -> tensor<3xf32>
  %mean = arith.mulf %sum, %quarter : tensor<3xf32>
  %safe = arith.addf %mean, %eps : tensor<3xf32>
  %root = math.sqrt %safe : tensor<3xf32>
  %wide = nd.broadcast %root dims = [0] : tensor<3xf32> -> tensor<3x4xf32>
  %y = arith.divf %x, %wide : tensor<3x4xf32>
  return %y : tensor<3x4xf32>
}

// -----

// Not a mean: the divisor is another number.
// CHECK-LABEL: func @other_divisor
// CHECK-NOT: nd.rms_norm
func.func @other_divisor(%x: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %third = arith.constant dense<0.333333> : tensor<3xf32>
  %eps = arith.constant dense<0.5> : tensor<3xf32>
  %square = arith.mulf %x, %x : tensor<3x4xf32>
  %sum = nd.reduce sum %square dims = [1] : tensor<3x4xf32> -> tensor<3xf32>
  %mean = arith.mulf %sum, %third : tensor<3xf32>
  %safe = arith.addf %mean, %eps : tensor<3xf32>
  %root = math.sqrt %safe : tensor<3xf32>
  %wide = nd.broadcast %root dims = [0] : tensor<3xf32> -> tensor<3x4xf32>
  %y = arith.divf %x, %wide : tensor<3x4xf32>
  return %y : tensor<3x4xf32>
}

// -----

// The statistics of another tensor are not its own norm.
// CHECK-LABEL: func @other_tensor
// CHECK-NOT: nd.rms_norm
func.func @other_tensor(%x: tensor<3x4xf32>, %z: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %quarter = arith.constant dense<0.25> : tensor<3xf32>
  %eps = arith.constant dense<0.5> : tensor<3xf32>
  %square = arith.mulf %z, %z : tensor<3x4xf32>
  %sum = nd.reduce sum %square dims = [1] : tensor<3x4xf32> -> tensor<3xf32>
  %mean = arith.mulf %sum, %quarter : tensor<3xf32>
  %safe = arith.addf %mean, %eps : tensor<3xf32>
  %root = math.sqrt %safe : tensor<3xf32>
  %wide = nd.broadcast %root dims = [0] : tensor<3xf32> -> tensor<3x4xf32>
  %y = arith.divf %x, %wide : tensor<3x4xf32>
  return %y : tensor<3x4xf32>
}
