// RUN: nd-opt %s | nd-opt | FileCheck %s
// RUN: nd-opt %s --mlir-print-op-generic | nd-opt | FileCheck %s

// CHECK-LABEL: func.func @dot_general
func.func @dot_general(%x: tensor<2x8x16xf32>, %w: tensor<32x16xf32>, %k: tensor<2x5x16xf32>) -> (tensor<2x8x32xf32>, tensor<2x8x5xf32>) {
  // CHECK: nd.dot_general %{{.*}}, %{{.*}} contract = [2] x [1] : tensor<2x8x16xf32>, tensor<32x16xf32> -> tensor<2x8x32xf32>
  %0 = nd.dot_general %x, %w contract = [2] x [1] : tensor<2x8x16xf32>, tensor<32x16xf32> -> tensor<2x8x32xf32>
  // CHECK: nd.dot_general %{{.*}}, %{{.*}} batch = [0] x [0] contract = [2] x [2] : tensor<2x8x16xf32>, tensor<2x5x16xf32> -> tensor<2x8x5xf32>
  %1 = nd.dot_general %x, %k batch = [0] x [0] contract = [2] x [2] : tensor<2x8x16xf32>, tensor<2x5x16xf32> -> tensor<2x8x5xf32>
  return %0, %1 : tensor<2x8x32xf32>, tensor<2x8x5xf32>
}

// CHECK-LABEL: func.func @low_precision_product
func.func @low_precision_product(%x: tensor<2x3xbf16>, %y: tensor<3x4xbf16>) -> tensor<2x4xf32> {
  // CHECK: nd.dot_general {{.*}} : tensor<2x3xbf16>, tensor<3x4xbf16> -> tensor<2x4xf32>
  %0 = nd.dot_general %x, %y contract = [1] x [0] : tensor<2x3xbf16>, tensor<3x4xbf16> -> tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}

// CHECK-LABEL: func.func @reduce
func.func @reduce(%x: tensor<2x3x4xf32>) -> (tensor<3xf32>, tensor<2x3xf32>, tensor<f32>) {
  // CHECK: nd.reduce sum %{{.*}} dims = [0, 2] : tensor<2x3x4xf32> -> tensor<3xf32>
  %0 = nd.reduce sum %x dims = [0, 2] : tensor<2x3x4xf32> -> tensor<3xf32>
  // CHECK: nd.reduce max %{{.*}} dims = [2] : tensor<2x3x4xf32> -> tensor<2x3xf32>
  %1 = nd.reduce max %x dims = [2] : tensor<2x3x4xf32> -> tensor<2x3xf32>
  // CHECK: nd.reduce min %{{.*}} dims = [0, 1, 2] : tensor<2x3x4xf32> -> tensor<f32>
  %2 = nd.reduce min %x dims = [0, 1, 2] : tensor<2x3x4xf32> -> tensor<f32>
  return %0, %1, %2 : tensor<3xf32>, tensor<2x3xf32>, tensor<f32>
}

// CHECK-LABEL: func.func @any
func.func @any(%x: tensor<2x3xi1>) -> tensor<2xi1> {
  // CHECK: nd.reduce max %{{.*}} dims = [1] : tensor<2x3xi1> -> tensor<2xi1>
  %0 = nd.reduce max %x dims = [1] : tensor<2x3xi1> -> tensor<2xi1>
  return %0 : tensor<2xi1>
}

// CHECK-LABEL: func.func @order
func.func @order(%x: tensor<2x5xf32>) -> (tensor<2xi64>, tensor<2x3xf32>, tensor<2x3xi64>, tensor<2x5xf32>) {
  // CHECK: nd.arg_max %{{.*}} dim = 1 : tensor<2x5xf32> -> tensor<2xi64>
  %0 = nd.arg_max %x dim = 1 : tensor<2x5xf32> -> tensor<2xi64>
  // CHECK: nd.top_k %{{.*}} : tensor<2x5xf32> -> tensor<2x3xf32>, tensor<2x3xi64>
  %1:2 = nd.top_k %x : tensor<2x5xf32> -> tensor<2x3xf32>, tensor<2x3xi64>
  // CHECK: nd.cumsum %{{.*}} dim = 1 exclusive reverse : tensor<2x5xf32>
  %2 = nd.cumsum %x dim = 1 exclusive reverse : tensor<2x5xf32>
  return %0, %1#0, %1#1, %2 : tensor<2xi64>, tensor<2x3xf32>, tensor<2x3xi64>, tensor<2x5xf32>
}
