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

// -----

// 64 MiB that are read only at the end and made of far less are computed when they are read, so that they are not live beside
// the other 64 MiB in between.
// CHECK-LABEL: func.func @large_result
func.func @large_result(%w: tensor<8x8xf32>, %x0: tensor<8x8xf32>, %a: tensor<4096x8xf32>) -> tensor<4096x4096xf32> {
  // CHECK-NEXT: %[[SMALL:.*]] = nd.gemm {{.*}} -> tensor<4096x8xf32>
  // CHECK-COUNT-21: nd.gemm {{.*}} -> tensor<8x8xf32>
  // CHECK-NEXT: %[[LARGE:.*]] = nd.gemm %[[SMALL]], %[[SMALL]] transposed
  // CHECK-NEXT: nd.kernel(%[[LARGE]],
  %small = nd.gemm %a, %w : tensor<4096x8xf32>, tensor<8x8xf32> -> tensor<4096x8xf32>
  %large = nd.gemm %small, %small transposed : tensor<4096x8xf32>, tensor<4096x8xf32> -> tensor<4096x4096xf32>
  %1 = nd.gemm %x0, %w : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
  %2 = nd.gemm %1, %w : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
  %3 = nd.gemm %2, %w : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
  %4 = nd.gemm %3, %w : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
  %5 = nd.gemm %4, %w : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
  %6 = nd.gemm %5, %w : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
  %7 = nd.gemm %6, %w : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
  %8 = nd.gemm %7, %w : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
  %9 = nd.gemm %8, %w : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
  %10 = nd.gemm %9, %w : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
  %m = nd.gemm %a, %a transposed : tensor<4096x8xf32>, tensor<4096x8xf32> -> tensor<4096x4096xf32>
  %n = nd.gemm %a transposed, %m : tensor<4096x8xf32>, tensor<4096x4096xf32> -> tensor<8x4096xf32>
  %o = nd.gemm %n, %a : tensor<8x4096xf32>, tensor<4096x8xf32> -> tensor<8x8xf32>
  %11 = nd.gemm %10, %o : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
  %12 = nd.gemm %11, %w : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
  %13 = nd.gemm %12, %w : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
  %14 = nd.gemm %13, %w : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
  %15 = nd.gemm %14, %w : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
  %16 = nd.gemm %15, %w : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
  %17 = nd.gemm %16, %w : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
  %18 = nd.gemm %17, %w : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
  %19 = nd.gemm %18, %w : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
  %20 = nd.gemm %19, %w : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
  %r = nd.kernel(%large, %20) : (tensor<4096x4096xf32>, tensor<8x8xf32>) -> tensor<4096x4096xf32> {
  ^bb0(%p: tensor<4096x4096xf32>, %q: tensor<8x8xf32>):
    %s = nd.reduce sum %q dims = [0, 1] : tensor<8x8xf32> -> tensor<f32>
    %t = nd.broadcast %s dims = [] : tensor<f32> -> tensor<4096x4096xf32>
    %u = arith.addf %p, %t : tensor<4096x4096xf32>
    nd.yield %u : tensor<4096x4096xf32>
  }
  return %r : tensor<4096x4096xf32>
}
