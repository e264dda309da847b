// RUN: nd-opt %s -nd-form-repeat -split-input-file -verify-diagnostics | FileCheck %s

// What runs once stays outside; a view of a weight that only microbatches read goes inside, and so do constants.
// CHECK-LABEL: func.func @step
// CHECK-SAME: %[[ALL:.*]]: tensor<4x2x8xf32>, %[[W:.*]]: tensor<8x8xf32>, %[[N:.*]]: tensor<f32>
func.func @step(%all: tensor<4x2x8xf32>, %w: tensor<8x8xf32>, %n: tensor<f32>) -> (tensor<8x8xf32>, tensor<f32>) {
  // CHECK: %[[ZERO:.*]] = arith.constant dense<0.000000e+00> : tensor<8x8xf32>
  // CHECK: %[[SEED:.*]] = arith.negf %[[N]]
  // CHECK: %[[SUM:.*]] = nd.repeat count = 4 sliced(%[[ALL]] : {{.*}}) carried(%[[ZERO]] : {{.*}}) captured(%[[W]], %[[SEED]] : {{.*}}) {
  // CHECK-NEXT: ^bb0(%[[X:[^:]*]]: tensor<2x8xf32>, %[[SO_FAR:[^:]*]]: tensor<8x8xf32>, %[[V:[^:]*]]: tensor<8x8xf32>, %[[S:.*]]: tensor<f32>):
  // CHECK: arith.constant dense<2.000000e+00>
  // CHECK: nd.transpose %[[V]]
  // CHECK: nd.broadcast %[[S]]
  // CHECK: %[[NEXT:.*]] = arith.addf %[[SO_FAR]], %{{.*}} : tensor<8x8xf32>
  // CHECK-NEXT: nd.yield %[[NEXT]]
  // CHECK: %[[NORM:.*]] = nd.reduce sum %[[SUM]]
  // CHECK: return %[[SUM]], %[[NORM]]
  %two = arith.constant dense<2.0> : tensor<2x8xf32>
  %x = nd.microbatch %all : tensor<4x2x8xf32> -> tensor<2x8xf32>
  %wt = nd.transpose %w permutation = [1, 0] : tensor<8x8xf32> -> tensor<8x8xf32>
  %y = nd.dot_general %x, %wt contract = [1] x [0] : tensor<2x8xf32>, tensor<8x8xf32> -> tensor<2x8xf32>
  %seed = arith.negf %n : tensor<f32>
  %s = nd.broadcast %seed dims = [] : tensor<f32> -> tensor<2x8xf32>
  %0 = arith.mulf %y, %s : tensor<2x8xf32>
  %1 = arith.mulf %0, %two : tensor<2x8xf32>
  %2 = nd.dot_general %1, %x contract = [0] x [0] : tensor<2x8xf32>, tensor<2x8xf32> -> tensor<8x8xf32>
  %3 = nd.accumulate %2 count = 4 : tensor<8x8xf32>
  %4 = nd.reduce sum %3 dims = [0, 1] : tensor<8x8xf32> -> tensor<f32>
  return %3, %4 : tensor<8x8xf32>, tensor<f32>
}

// -----

// Marked as once a step: the same in front of the loop.
// CHECK-LABEL: func.func @once
// CHECK: %[[WT:.*]] = nd.transpose
// CHECK: nd.repeat {{.*}} captured(%[[WT]] : tensor<8x8xf32>)
func.func @once(%all: tensor<4x2x8xf32>, %w: tensor<8x8xf32>) -> tensor<2x8xf32> {
  %x = nd.microbatch %all : tensor<4x2x8xf32> -> tensor<2x8xf32>
  %wt = nd.transpose %w permutation = [1, 0] {nd.once} : tensor<8x8xf32> -> tensor<8x8xf32>
  %y = nd.dot_general %x, %wt contract = [1] x [0] : tensor<2x8xf32>, tensor<8x8xf32> -> tensor<2x8xf32>
  %0 = nd.accumulate %y count = 4 : tensor<2x8xf32>
  return %0 : tensor<2x8xf32>
}

// -----

func.func @escapes(%all: tensor<4x8xf32>) -> tensor<8xf32> {
  %x = nd.microbatch %all : tensor<4x8xf32> -> tensor<8xf32>
  // expected-error@+1 {{returns a value of one microbatch; only sums (nd.accumulate) leave the loop}}
  return %x : tensor<8xf32>
}

// -----

func.func @needs_sum(%all: tensor<4x8xf32>) -> tensor<8xf32> {
  %x = nd.microbatch %all : tensor<4x8xf32> -> tensor<8xf32>
  %0 = nd.accumulate %x count = 4 : tensor<8xf32>
  // expected-error@+1 {{needs the sum over all microbatches, which exists only behind them, while they run}}
  %1 = arith.mulf %x, %0 : tensor<8xf32>
  %2 = nd.accumulate %1 count = 4 : tensor<8xf32>
  return %2 : tensor<8xf32>
}

// -----

func.func @counts(%all: tensor<4x8xf32>) -> tensor<8xf32> {
  %x = nd.microbatch %all : tensor<4x8xf32> -> tensor<8xf32>
  // expected-error@+1 {{is of 3 microbatches, but the step has 4}}
  %0 = nd.accumulate %x count = 3 : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

func.func @twice(%all: tensor<4x4x8xf32>) -> tensor<8xf32> {
  %x = nd.microbatch %all : tensor<4x4x8xf32> -> tensor<4x8xf32>
  // expected-error@+1 {{takes a microbatch of what belongs to one microbatch already}}
  %y = nd.microbatch %x : tensor<4x8xf32> -> tensor<8xf32>
  %0 = nd.accumulate %y count = 4 : tensor<8xf32>
  return %0 : tensor<8xf32>
}
