// RUN: nd-opt %s | nd-opt | FileCheck %s
// RUN: nd-opt %s --mlir-print-op-generic | nd-opt | FileCheck %s

// CHECK-LABEL: func.func @broadcast
func.func @broadcast(%x: tensor<3xf32>, %s: tensor<f32>) -> (tensor<2x3xf32>, tensor<4xf32>) {
  // CHECK: nd.broadcast %{{.*}} dims = [1] : tensor<3xf32> -> tensor<2x3xf32>
  %0 = nd.broadcast %x dims = [1] : tensor<3xf32> -> tensor<2x3xf32>
  // CHECK: nd.broadcast %{{.*}} dims = [] : tensor<f32> -> tensor<4xf32>
  %1 = nd.broadcast %s dims = [] : tensor<f32> -> tensor<4xf32>
  return %0, %1 : tensor<2x3xf32>, tensor<4xf32>
}

// CHECK-LABEL: func.func @reshape
func.func @reshape(%x: tensor<2x3xi64>) -> tensor<3x1x2xi64> {
  // CHECK: nd.reshape %{{.*}} : tensor<2x3xi64> -> tensor<3x1x2xi64>
  %0 = nd.reshape %x : tensor<2x3xi64> -> tensor<3x1x2xi64>
  return %0 : tensor<3x1x2xi64>
}

// CHECK-LABEL: func.func @transpose
func.func @transpose(%x: tensor<2x3x4xi1>) -> tensor<4x2x3xi1> {
  // CHECK: nd.transpose %{{.*}} permutation = [2, 0, 1] : tensor<2x3x4xi1> -> tensor<4x2x3xi1>
  %0 = nd.transpose %x permutation = [2, 0, 1] : tensor<2x3x4xi1> -> tensor<4x2x3xi1>
  return %0 : tensor<4x2x3xi1>
}

// CHECK-LABEL: func.func @slice
func.func @slice(%x: tensor<2x7xf32>) -> tensor<1x3xf32> {
  // CHECK: nd.slice %{{.*}} starts = [1, 2] strides = [1, 2] : tensor<2x7xf32> -> tensor<1x3xf32>
  %0 = nd.slice %x starts = [1, 2] strides = [1, 2] : tensor<2x7xf32> -> tensor<1x3xf32>
  return %0 : tensor<1x3xf32>
}

// CHECK-LABEL: func.func @pad
func.func @pad(%x: tensor<2x3xf32>, %v: tensor<f32>) -> tensor<2x8xf32> {
  // CHECK: nd.pad %{{.*}}, %{{.*}} low = [0, 2] high = [0, 1] interior = [0, 1] : tensor<2x3xf32>, tensor<f32> -> tensor<2x8xf32>
  %0 = nd.pad %x, %v low = [0, 2] high = [0, 1] interior = [0, 1] : tensor<2x3xf32>, tensor<f32> -> tensor<2x8xf32>
  return %0 : tensor<2x8xf32>
}

// CHECK-LABEL: func.func @concat
func.func @concat(%x: tensor<2x3xf32>, %y: tensor<2x4xf32>) -> tensor<2x7xf32> {
  // CHECK: nd.concat %{{.*}}, %{{.*}} dim = 1 : tensor<2x3xf32>, tensor<2x4xf32> -> tensor<2x7xf32>
  %0 = nd.concat %x, %y dim = 1 : tensor<2x3xf32>, tensor<2x4xf32> -> tensor<2x7xf32>
  return %0 : tensor<2x7xf32>
}

// CHECK-LABEL: func.func @iota
func.func @iota() -> tensor<2x3xi64> {
  // CHECK: nd.iota dim = 1 : tensor<2x3xi64>
  %0 = nd.iota dim = 1 : tensor<2x3xi64>
  return %0 : tensor<2x3xi64>
}
