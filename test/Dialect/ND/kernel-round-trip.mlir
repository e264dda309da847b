// RUN: nd-opt %s | nd-opt | FileCheck %s
// RUN: nd-opt %s --mlir-print-op-generic | nd-opt | FileCheck %s

// CHECK-LABEL: func.func @kernel
func.func @kernel(%x: tensor<3xf32>) -> tensor<3xf32> {
  // CHECK: nd.kernel(%{{.*}}) : (tensor<3xf32>) -> tensor<3xf32> {
  %0 = nd.kernel(%x) : (tensor<3xf32>) -> tensor<3xf32> {
  ^bb0(%a: tensor<3xf32>):
    %1 = arith.addf %a, %a : tensor<3xf32>
    // CHECK: nd.yield %{{.*}} : tensor<3xf32>
    nd.yield %1 : tensor<3xf32>
  }
  return %0 : tensor<3xf32>
}

// CHECK-LABEL: func.func @gemm
func.func @gemm(%x: tensor<5x3xf32>, %w: tensor<4x3xf32>, %b: tensor<4xf32>, %c: tensor<5x4xf32>) -> tensor<5x4xf32> {
  // CHECK: nd.gemm %{{.*}}, %{{.*}} transposed bias(%{{.*}} : tensor<4xf32>) accumulate(%{{.*}} : tensor<5x4xf32>) : tensor<5x3xf32>, tensor<4x3xf32> -> tensor<5x4xf32>
  %0 = nd.gemm %x, %w transposed bias(%b : tensor<4xf32>) accumulate(%c : tensor<5x4xf32>) : tensor<5x3xf32>, tensor<4x3xf32> -> tensor<5x4xf32>
  return %0 : tensor<5x4xf32>
}

// CHECK-LABEL: func.func @batched_gemm
func.func @batched_gemm(%x: tensor<2x3x5xf32>, %w: tensor<2x3x4xf32>) -> tensor<2x5x4xf32> {
  // CHECK: nd.gemm %{{.*}} transposed, %{{.*}} : tensor<2x3x5xf32>, tensor<2x3x4xf32> -> tensor<2x5x4xf32>
  %0 = nd.gemm %x transposed, %w : tensor<2x3x5xf32>, tensor<2x3x4xf32> -> tensor<2x5x4xf32>
  return %0 : tensor<2x5x4xf32>
}
