// RUN: nd-opt %s --canonicalize | FileCheck %s

// CHECK-LABEL: func.func @dropout_of_nothing
func.func @dropout_of_nothing(%x: tensor<3xf32>) -> tensor<3xf32> {
  // CHECK-NEXT: return %arg0
  %0 = nd.dropout %x p = 0.0 : tensor<3xf32>
  return %0 : tensor<3xf32>
}

// CHECK-LABEL: func.func @dropout_of_something
func.func @dropout_of_something(%x: tensor<3xf32>) -> tensor<3xf32> {
  // CHECK-NEXT: nd.dropout
  %0 = nd.dropout %x p = 0.5 : tensor<3xf32>
  return %0 : tensor<3xf32>
}
