// RUN: nd-opt %s -nd-widen-attention | FileCheck %s

// CHECK-LABEL: func.func @attention(
func.func @attention(%q: tensor<1x2x4x8xf16>, %k: tensor<1x2x4x8xf16>, %v: tensor<1x2x4x8xf16>) -> tensor<1x2x4x8xf16> {
  // CHECK-COUNT-3: arith.extf
  // CHECK: %[[O:.*]], %{{.*}} = nd.attention {{.*}} -> tensor<1x2x4x8xf32>, tensor<1x2x4xf32>
  // CHECK: %[[R:.*]] = arith.truncf %[[O]]
  // CHECK: return %[[R]]
  %o, %lse = nd.attention %q, %k, %v scale = 1.0 causal
    : tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16> -> tensor<1x2x4x8xf16>, tensor<1x2x4xf32>
  return %o : tensor<1x2x4x8xf16>
}
