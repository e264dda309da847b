// RUN: nd-opt %s -nd-form-gemms -split-input-file | FileCheck %s

// CHECK-LABEL: func.func @linear(
// CHECK-SAME: %[[X:.*]]: tensor<2x8x16xf32>, %[[W:.*]]: tensor<32x16xf32>, %[[B:.*]]: tensor<32xf32>
func.func @linear(%x: tensor<2x8x16xf32>, %w: tensor<32x16xf32>, %b: tensor<32xf32>) -> tensor<2x8x32xf32> {
  // CHECK-NEXT: %[[ROWS:.*]] = nd.reshape %[[X]] : tensor<2x8x16xf32> -> tensor<16x16xf32>
  // CHECK-NEXT: %[[Y:.*]] = nd.gemm %[[ROWS]], %[[W]] transposed bias(%[[B]] : tensor<32xf32>) : tensor<16x16xf32>, tensor<32x16xf32> -> tensor<16x32xf32>
  // CHECK-NEXT: %[[R:.*]] = nd.reshape %[[Y]] : tensor<16x32xf32> -> tensor<2x8x32xf32>
  // CHECK-NEXT: return %[[R]]
  %0 = nd.dot_general %x, %w contract = [2] x [1] : tensor<2x8x16xf32>, tensor<32x16xf32> -> tensor<2x8x32xf32>
  %1 = nd.broadcast %b dims = [2] : tensor<32xf32> -> tensor<2x8x32xf32>
  %2 = arith.addf %1, %0 : tensor<2x8x32xf32>
  return %2 : tensor<2x8x32xf32>
}

// -----

// CHECK-LABEL: func.func @weight_gradient(
// CHECK-SAME: %[[X:.*]]: tensor<2x8x16xf32>, %[[DY:.*]]: tensor<2x8x32xf32>
func.func @weight_gradient(%x: tensor<2x8x16xf32>, %dy: tensor<2x8x32xf32>) -> (tensor<32x16xf32>, tensor<16x32xf32>) {
  // CHECK-DAG: %[[DY2:.*]] = nd.reshape %[[DY]]
  // CHECK-DAG: %[[X2:.*]] = nd.reshape %[[X]]
  // CHECK: %[[NK:.*]] = nd.gemm %[[DY2]] transposed, %[[X2]] : tensor<16x32xf32>, tensor<16x16xf32> -> tensor<32x16xf32>
  %0 = nd.dot_general %dy, %x contract = [0, 1] x [0, 1] : tensor<2x8x32xf32>, tensor<2x8x16xf32> -> tensor<32x16xf32>
  // CHECK: %[[KN:.*]] = nd.gemm %{{.*}} transposed, %{{.*}} : tensor<16x16xf32>, tensor<16x32xf32> -> tensor<16x32xf32>
  // CHECK-NEXT: return %[[NK]], %[[KN]]
  %1 = nd.dot_general %dy, %x contract = [0, 1] x [0, 1] : tensor<2x8x32xf32>, tensor<2x8x16xf32> -> tensor<32x16xf32>
  %2 = nd.transpose %1 permutation = [1, 0] : tensor<32x16xf32> -> tensor<16x32xf32>
  return %0, %2 : tensor<32x16xf32>, tensor<16x32xf32>
}

// -----

// The transposed weight of torch.nn.Linear is a flag.
// CHECK-LABEL: func.func @transposed_operand(
func.func @transposed_operand(%x: tensor<4x16xf32>, %w: tensor<32x16xf32>) -> tensor<4x32xf32> {
  // CHECK-NOT: nd.transpose
  // CHECK: nd.gemm %{{.*}}, %{{.*}} transposed : tensor<4x16xf32>, tensor<32x16xf32> -> tensor<4x32xf32>
  %0 = nd.transpose %w permutation = [1, 0] : tensor<32x16xf32> -> tensor<16x32xf32>
  %1 = nd.dot_general %x, %0 contract = [1] x [0] : tensor<4x16xf32>, tensor<16x32xf32> -> tensor<4x32xf32>
  return %1 : tensor<4x32xf32>
}

// -----

// CHECK-LABEL: func.func @batched(
func.func @batched(%q: tensor<2x3x8x4xf32>, %k: tensor<2x3x8x4xf32>) -> tensor<2x3x8x8xf32> {
  // CHECK: nd.gemm %{{.*}}, %{{.*}} transposed : tensor<6x8x4xf32>, tensor<6x8x4xf32> -> tensor<6x8x8xf32>
  // CHECK-NEXT: nd.reshape %{{.*}} : tensor<6x8x8xf32> -> tensor<2x3x8x8xf32>
  %0 = nd.dot_general %q, %k batch = [0, 1] x [0, 1] contract = [3] x [3] : tensor<2x3x8x4xf32>, tensor<2x3x8x4xf32> -> tensor<2x3x8x8xf32>
  return %0 : tensor<2x3x8x8xf32>
}

// -----

// A batch dimension between the others: one transpose stays.
// CHECK-LABEL: func.func @inner_batch(
// CHECK-SAME: %[[X:.*]]: tensor<8x3x4xf32>, %[[Y:.*]]: tensor<3x4x5xf32>
func.func @inner_batch(%x: tensor<8x3x4xf32>, %y: tensor<3x4x5xf32>) -> tensor<3x8x5xf32> {
  // CHECK-NEXT: %[[T:.*]] = nd.transpose %[[X]] permutation = [1, 0, 2]
  // CHECK-NEXT: nd.gemm %[[T]], %[[Y]] : tensor<3x8x4xf32>, tensor<3x4x5xf32> -> tensor<3x8x5xf32>
  %0 = nd.dot_general %x, %y batch = [1] x [0] contract = [2] x [1] : tensor<8x3x4xf32>, tensor<3x4x5xf32> -> tensor<3x8x5xf32>
  return %0 : tensor<3x8x5xf32>
}

// -----

// CHECK-LABEL: func.func @accumulate(
func.func @accumulate(%a: tensor<4x8xf32>, %b: tensor<8x6xf32>, %c: tensor<4x8xf32>, %d: tensor<8x6xf32>) -> tensor<4x6xf32> {
  // CHECK: %[[FIRST:.*]] = nd.gemm %{{.*}}, %{{.*}} : tensor<4x8xf32>, tensor<8x6xf32> -> tensor<4x6xf32>
  // CHECK-NEXT: %[[SUM:.*]] = nd.gemm %{{.*}}, %{{.*}} accumulate(%[[FIRST]] : tensor<4x6xf32>)
  // CHECK-NEXT: return %[[SUM]]
  %0 = nd.dot_general %a, %b contract = [1] x [0] : tensor<4x8xf32>, tensor<8x6xf32> -> tensor<4x6xf32>
  %1 = nd.dot_general %c, %d contract = [1] x [0] : tensor<4x8xf32>, tensor<8x6xf32> -> tensor<4x6xf32>
  %2 = arith.addf %0, %1 : tensor<4x6xf32>
  return %2 : tensor<4x6xf32>
}

// -----

// A value that is read again is not overwritten, and the addition stays.
// CHECK-LABEL: func.func @residual(
func.func @residual(%a: tensor<4x8xf32>, %b: tensor<8x6xf32>, %x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  // CHECK: nd.gemm
  // CHECK-NOT: accumulate
  // CHECK: arith.addf
  %0 = nd.dot_general %a, %b contract = [1] x [0] : tensor<4x8xf32>, tensor<8x6xf32> -> tensor<4x6xf32>
  %1 = arith.addf %0, %x : tensor<4x6xf32>
  return %1 : tensor<4x6xf32>
}

// -----

// CHECK-LABEL: func.func @outer_product(
func.func @outer_product(%a: tensor<4xf32>, %b: tensor<6xf32>) -> tensor<4x6xf32> {
  // CHECK: nd.gemm %{{.*}}, %{{.*}} : tensor<4x1xf32>, tensor<1x6xf32> -> tensor<4x6xf32>
  %0 = nd.dot_general %a, %b contract = [] x [] : tensor<4xf32>, tensor<6xf32> -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}

// -----

// One rounding is enough: the bias is added before it.
// CHECK-LABEL: func.func @rounded_bias(
// CHECK-SAME: %[[X:.*]]: tensor<4x8xbf16>, %[[W:.*]]: tensor<8x8xbf16>, %[[B:.*]]: tensor<8xf32>
func.func @rounded_bias(%x: tensor<4x8xbf16>, %w: tensor<8x8xbf16>, %b: tensor<8xf32>) -> tensor<4x8xbf16> {
  // CHECK-NEXT: %[[Y:.*]] = nd.gemm %[[X]], %[[W]] bias(%[[B]] : tensor<8xf32>) : tensor<4x8xbf16>, tensor<8x8xbf16> -> tensor<4x8xbf16>
  // CHECK-NEXT: return %[[Y]]
  %0 = nd.dot_general %x, %w contract = [1] x [0] : tensor<4x8xbf16>, tensor<8x8xbf16> -> tensor<4x8xbf16>
  %1 = arith.extf %0 : tensor<4x8xbf16> to tensor<4x8xf32>
  %2 = nd.broadcast %b dims = [1] : tensor<8xf32> -> tensor<4x8xf32>
  %3 = arith.addf %1, %2 : tensor<4x8xf32>
  %4 = arith.truncf %3 : tensor<4x8xf32> to tensor<4x8xbf16>
  return %4 : tensor<4x8xbf16>
}

// -----

// f16 is multiplied in f32.
// CHECK-LABEL: func.func @half(
func.func @half(%x: tensor<4x8xf16>, %w: tensor<8x8xf16>) -> tensor<4x8xf16> {
  // CHECK: %[[Y:.*]] = nd.gemm %{{.*}}, %{{.*}} : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  // CHECK-NEXT: arith.truncf %[[Y]] : tensor<4x8xf32> to tensor<4x8xf16>
  %0 = nd.dot_general %x, %w contract = [1] x [0] : tensor<4x8xf16>, tensor<8x8xf16> -> tensor<4x8xf16>
  return %0 : tensor<4x8xf16>
}

// -----

// A product that is all that a turn adds to a sum is added where the sum lies, also below a scatter.
// CHECK-LABEL: func.func @carried
func.func @carried(%x: tensor<3x4x8xf32>, %ids: tensor<3x4xi64>, %zero: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %0:2 = nd.repeat count = 3 sliced(%x, %ids : tensor<3x4x8xf32>, tensor<3x4xi64>)
      carried(%zero, %zero : tensor<8x8xf32>, tensor<8x8xf32>) {
  // CHECK: ^bb0(%[[X:.*]]: tensor<4x8xf32>, %{{.*}}: tensor<4xi64>, %[[A:.*]]: tensor<8x8xf32>, %[[B:.*]]: tensor<8x8xf32>):
  ^bb0(%row: tensor<4x8xf32>, %id: tensor<4xi64>, %a: tensor<8x8xf32>, %b: tensor<8x8xf32>):
    // CHECK: nd.gemm %[[X]] transposed, %[[X]] accumulate(%[[A]] :
    %1 = nd.dot_general %row, %row contract = [0] x [0] : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<8x8xf32>
    %2 = arith.addf %a, %1 : tensor<8x8xf32>
    // CHECK: %[[BELOW:.*]] = nd.gemm %[[X]] transposed, %[[X]] accumulate(%[[B]] :
    %3 = nd.dot_general %row, %row contract = [0] x [0] : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<8x8xf32>
    %4 = arith.addf %b, %3 : tensor<8x8xf32>
    // CHECK: nd.scatter_add %{{.*}}, %[[X]] init %[[BELOW]] :
    %5 = nd.scatter_add %id, %row init %4 : tensor<8x8xf32> : tensor<4xi64>, tensor<4x8xf32> -> tensor<8x8xf32>
    nd.yield %2, %5 : tensor<8x8xf32>, tensor<8x8xf32>
  }
  return %0#0, %0#1 : tensor<8x8xf32>, tensor<8x8xf32>
}
