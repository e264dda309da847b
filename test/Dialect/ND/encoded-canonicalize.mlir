// RUN: nd-opt %s --canonicalize | FileCheck %s

// The state of a sharded tensor is the encoding of its type: no pattern invents one, and what changes it stays.

// CHECK-LABEL: func.func @encoded
func.func @encoded(%x: tensor<2x3xf32, "a">) -> (tensor<2x3xf32, "a">, tensor<2x3xf32, "b">, tensor<2x3xf32, "a">) {
  // CHECK-DAG: %[[B:.*]] = nd.reshape %arg0 : tensor<2x3xf32, "a"> -> tensor<2x3xf32, "b">
  // CHECK-DAG: %[[T:.*]] = nd.transpose %arg0 permutation = [1, 0]
  // CHECK-DAG: %[[U:.*]] = nd.transpose %[[T]] permutation = [1, 0]
  // CHECK: return %arg0, %[[B]], %[[U]]
  %0 = nd.reshape %x : tensor<2x3xf32, "a"> -> tensor<2x3xf32, "a">
  %1 = nd.reshape %x : tensor<2x3xf32, "a"> -> tensor<2x3xf32, "b">
  %2 = nd.transpose %x permutation = [1, 0] : tensor<2x3xf32, "a"> -> tensor<3x2xf32, "b">
  %3 = nd.transpose %2 permutation = [1, 0] : tensor<3x2xf32, "b"> -> tensor<2x3xf32, "a">
  return %0, %1, %3 : tensor<2x3xf32, "a">, tensor<2x3xf32, "b">, tensor<2x3xf32, "a">
}
