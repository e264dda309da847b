// RUN: nd-opt %s --canonicalize | FileCheck %s

// The row of one constant index is a slice.
// CHECK-LABEL: func.func @constant_row
func.func @constant_row(%x: tensor<6x2x3xf32>) -> tensor<1x1x2x3xf32> {
  // CHECK-NEXT: %[[S:.*]] = nd.slice %arg0 starts = [5, 0, 0] strides = [1, 1, 1] : tensor<6x2x3xf32> -> tensor<1x2x3xf32>
  // CHECK-NEXT: %[[R:.*]] = nd.reshape %[[S]]
  // CHECK-NEXT: return %[[R]]
  %i = arith.constant dense<5> : tensor<1x1xi64>
  %0 = nd.take %x[%i] : tensor<6x2x3xf32>, tensor<1x1xi64> -> tensor<1x1x2x3xf32>
  return %0 : tensor<1x1x2x3xf32>
}

// Not of several indices, of one that no row has, or of a table with a row that gets no gradient.
// CHECK-LABEL: func.func @lookup
func.func @lookup(%x: tensor<6x2xf32>) -> (tensor<2x2xf32>, tensor<1x2xf32>, tensor<1x2xf32>) {
  // CHECK-COUNT-3: nd.take
  %several = arith.constant dense<[0, 4]> : tensor<2xi64>
  %0 = nd.take %x[%several] : tensor<6x2xf32>, tensor<2xi64> -> tensor<2x2xf32>
  %outside = arith.constant dense<6> : tensor<1xi64>
  %1 = nd.take %x[%outside] : tensor<6x2xf32>, tensor<1xi64> -> tensor<1x2xf32>
  %first = arith.constant dense<0> : tensor<1xi64>
  %2 = nd.take %x[%first] {padding_idx = 0 : i64} : tensor<6x2xf32>, tensor<1xi64> -> tensor<1x2xf32>
  return %0, %1, %2 : tensor<2x2xf32>, tensor<1x2xf32>, tensor<1x2xf32>
}
