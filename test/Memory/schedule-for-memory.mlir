// RUN: nd-opt %s -nd-schedule-for-memory -split-input-file | FileCheck %s

// Each update runs when its gradient is complete, and after the last reader of the old weight (the second product).
// CHECK-LABEL: func.func @updates
func.func @updates(
    %w1: tensor<8x8xf32> {nd.kind = "weight", nd.name = "w1"}, %w2: tensor<8x8xf32> {nd.kind = "weight", nd.name = "w2"},
    %x: tensor<8x8xf32> {nd.kind = "input", nd.name = "x"})
    -> (tensor<8x8xf32> {nd.kind = "weight", nd.name = "w1"}, tensor<8x8xf32> {nd.kind = "weight", nd.name = "w2"}) {
  // CHECK: nd.gemm
  // CHECK-NEXT: nd.gemm
  // CHECK-NEXT: %[[G2:.*]] = nd.gemm {{.*}} {second}
  // CHECK-NEXT: nd.kernel(%{{.*}}, %[[G2]])
  // CHECK: %[[G1:.*]] = nd.gemm {{.*}} {first}
  // CHECK-NEXT: nd.kernel(%{{.*}}, %[[G1]])
  %y = nd.gemm %x, %w1 : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
  %z = nd.gemm %y, %w2 : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
  %g2 = nd.gemm %z, %y {second} : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
  %g1 = nd.gemm %y, %x {first} : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
  %n1 = nd.kernel(%w1, %g1) : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32> {
  ^bb0(%w: tensor<8x8xf32>, %g: tensor<8x8xf32>):
    %0 = arith.subf %w, %g : tensor<8x8xf32>
    nd.yield %0 : tensor<8x8xf32>
  }
  %n2 = nd.kernel(%w2, %g2) : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32> {
  ^bb0(%w: tensor<8x8xf32>, %g: tensor<8x8xf32>):
    %0 = arith.subf %w, %g : tensor<8x8xf32>
    nd.yield %0 : tensor<8x8xf32>
  }
  return %n1, %n2 : tensor<8x8xf32>, tensor<8x8xf32>
}

// -----

// The update stands before a reader of the old value, and moves behind it.
// CHECK-LABEL: func.func @late_reader
func.func @late_reader(%w: tensor<8x8xf32> {nd.kind = "weight", nd.name = "w"}, %g: tensor<8x8xf32>)
    -> (tensor<8x8xf32> {nd.kind = "weight", nd.name = "w"}, tensor<8x8xf32>) {
  // CHECK: nd.gemm
  // CHECK-NEXT: nd.kernel
  %n = nd.kernel(%w, %g) : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32> {
  ^bb0(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>):
    %0 = arith.subf %a, %b : tensor<8x8xf32>
    nd.yield %0 : tensor<8x8xf32>
  }
  %y = nd.gemm %w, %g : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
  return %n, %y : tensor<8x8xf32>, tensor<8x8xf32>
}

// -----

// A reader of the old value that needs the new one: the order stays.
// CHECK-LABEL: func.func @both_values
func.func @both_values(%w: tensor<8x8xf32> {nd.kind = "weight", nd.name = "w"}, %g: tensor<8x8xf32>)
    -> (tensor<8x8xf32> {nd.kind = "weight", nd.name = "w"}, tensor<8x8xf32>) {
  // CHECK: %[[N:.*]] = nd.kernel
  // CHECK: nd.gemm %{{.*}}, %[[N]]
  %n = nd.kernel(%w, %g) : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32> {
  ^bb0(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>):
    %0 = arith.subf %a, %b : tensor<8x8xf32>
    nd.yield %0 : tensor<8x8xf32>
  }
  %y = nd.gemm %w, %n : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
  return %n, %y : tensor<8x8xf32>, tensor<8x8xf32>
}
