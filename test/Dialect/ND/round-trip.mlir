// RUN: nd-opt %s | nd-opt | FileCheck %s

// CHECK-LABEL: func.func @linear
func.func @linear(%x: tensor<2x8x16xf32>, %w: tensor<32x16xf32>, %b: tensor<32xf32>) -> tensor<2x8x32xf32> {
  // CHECK: nd.dot_general %{{.*}}, %{{.*}} contract = [2] x [1]
  %0 = nd.dot_general %x, %w contract = [2] x [1] : tensor<2x8x16xf32>, tensor<32x16xf32> -> tensor<2x8x32xf32>
  // CHECK: nd.broadcast %{{.*}} dims = [2]
  %1 = nd.broadcast %b dims = [2] : tensor<32xf32> -> tensor<2x8x32xf32>
  %2 = arith.addf %0, %1 : tensor<2x8x32xf32>
  return %2 : tensor<2x8x32xf32>
}
