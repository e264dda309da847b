// RUN: nd-opt %s | nd-opt | FileCheck %s
// RUN: nd-opt %s --mlir-print-op-generic | nd-opt | FileCheck %s

// CHECK-LABEL: func.func @norms
func.func @norms(%x: tensor<2x3x8xf32>, %w: tensor<8xf32>) -> tensor<2x3x8xf32> {
  // CHECK: nd.layer_norm %{{.*}}, %{{.*}} eps = {{.*}} : tensor<2x3x8xf32>, tensor<8xf32> -> tensor<2x3xf32>
  %0:3 = nd.layer_norm %x, %w eps = 1.0e-5 : tensor<2x3x8xf32>, tensor<8xf32> -> tensor<2x3xf32>
  // CHECK: nd.layer_norm %{{.*}}, %{{.*}}, %{{.*}} eps = {{.*}} : tensor<2x3x8xf32>, tensor<8xf32>, tensor<8xf32> -> tensor<2x3xf32>
  %1:3 = nd.layer_norm %0#0, %w, %w eps = 1.0e-5 : tensor<2x3x8xf32>, tensor<8xf32>, tensor<8xf32> -> tensor<2x3xf32>
  // CHECK: nd.rms_norm %{{.*}} eps = {{.*}} : tensor<2x3x8xf32> -> tensor<2x3xf32>
  %2:2 = nd.rms_norm %1#0 eps = 1.0e-6 : tensor<2x3x8xf32> -> tensor<2x3xf32>
  // CHECK: nd.rms_norm %{{.*}}, %{{.*}} eps = {{.*}} : tensor<2x3x8xf32>, tensor<8xf32> -> tensor<2x3xf32>
  %3:2 = nd.rms_norm %2#0, %w eps = 1.0e-6 : tensor<2x3x8xf32>, tensor<8xf32> -> tensor<2x3xf32>
  // CHECK: nd.softmax %{{.*}} dim = 2 : tensor<2x3x8xf32>
  %4 = nd.softmax %3#0 dim = 2 : tensor<2x3x8xf32>
  // CHECK: nd.dropout %{{.*}} p = {{.*}} : tensor<2x3x8xf32>
  %5 = nd.dropout %4 p = 0.1 : tensor<2x3x8xf32>
  return %5 : tensor<2x3x8xf32>
}

// CHECK-LABEL: func.func @rope
func.func @rope(%x: tensor<2x4x3x8xf32>, %c: tensor<2x3x2xf32>, %s: tensor<2x3x2xf32>) -> tensor<2x4x3x8xf32> {
  // CHECK: nd.rope %{{.*}}, %{{.*}}, %{{.*}} : tensor<2x4x3x8xf32>, tensor<2x3x2xf32>
  %0 = nd.rope %x, %c, %s : tensor<2x4x3x8xf32>, tensor<2x3x2xf32>
  // CHECK: nd.rope %{{.*}}, %{{.*}}, %{{.*}} interleaved : tensor<2x4x3x8xf32>, tensor<2x3x2xf32>
  %1 = nd.rope %0, %c, %s interleaved : tensor<2x4x3x8xf32>, tensor<2x3x2xf32>
  return %1 : tensor<2x4x3x8xf32>
}

// CHECK-LABEL: func.func @attention
func.func @attention(%q: tensor<2x4x3x8xf32>, %k: tensor<2x2x3x8xf32>, %v: tensor<2x2x3x6xf32>, %ids: tensor<2x3xi64>,
                     %padding: tensor<2x3xi1>, %mask: tensor<1x1x3x3xf32>, %g: tensor<2x4x3x6xf32>) -> tensor<2x2x3x6xf32> {
  // CHECK: nd.attention %{{.*}}, %{{.*}}, %{{.*}} positions(%{{.*}} : tensor<2x3xi64>) documents(%{{.*}} : tensor<2x3xi64>)
  // CHECK-SAME: key_padding(%{{.*}} : tensor<2x3xi1>) mask(%{{.*}} : tensor<1x1x3x3xf32>) scale = 2.500000e-01 causal {softcap = 2.000000e+01 : f64, window = 2 : i64}
  // CHECK-SAME: : tensor<2x4x3x8xf32>, tensor<2x2x3x8xf32>, tensor<2x2x3x6xf32> -> tensor<2x4x3x6xf32>, tensor<2x4x3xf32>
  %0:2 = nd.attention %q, %k, %v positions(%ids : tensor<2x3xi64>) documents(%ids : tensor<2x3xi64>)
    key_padding(%padding : tensor<2x3xi1>) mask(%mask : tensor<1x1x3x3xf32>) scale = 0.25 causal {softcap = 20.0 : f64, window = 2 : i64}
    : tensor<2x4x3x8xf32>, tensor<2x2x3x8xf32>, tensor<2x2x3x6xf32> -> tensor<2x4x3x6xf32>, tensor<2x4x3xf32>
  // CHECK: nd.attention_grad %{{.*}}, %{{.*}}, %{{.*}} result(%{{.*}}, %{{.*}}, %{{.*}}) scale = 2.500000e-01 :
  %1:3 = nd.attention_grad %q, %k, %v result(%0#0, %0#1, %g) scale = 0.25
    : tensor<2x4x3x8xf32>, tensor<2x2x3x8xf32>, tensor<2x2x3x6xf32>, tensor<2x4x3x6xf32>, tensor<2x4x3xf32>, tensor<2x4x3x6xf32>
    -> tensor<2x4x3x8xf32>, tensor<2x2x3x8xf32>, tensor<2x2x3x6xf32>
  return %1#2 : tensor<2x2x3x6xf32>
}

// CHECK-LABEL: func.func @cross_entropy
func.func @cross_entropy(%x: tensor<6x11xf32>, %labels: tensor<6xi64>, %g: tensor<6xf32>) -> tensor<6x11xf32> {
  // CHECK: nd.softmax_cross_entropy %{{.*}}, %{{.*}} ignore = -100 : tensor<6x11xf32>, tensor<6xi64> -> tensor<6xf32>
  %0:2 = nd.softmax_cross_entropy %x, %labels ignore = -100 : tensor<6x11xf32>, tensor<6xi64> -> tensor<6xf32>
  // CHECK: nd.softmax_cross_entropy_grad %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} ignore = -100 : tensor<6x11xf32>, tensor<6xi64>, tensor<6xf32>
  %1 = nd.softmax_cross_entropy_grad %x, %labels, %0#1, %g ignore = -100 : tensor<6x11xf32>, tensor<6xi64>, tensor<6xf32>
  return %1 : tensor<6x11xf32>
}
