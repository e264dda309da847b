// RUN: nd-opt %s --nd-add-microbatches=count=4 --canonicalize --cse -split-input-file -verify-diagnostics | FileCheck %s
// RUN: nd-opt %s --nd-add-microbatches=count=1 -split-input-file | FileCheck %s --check-prefix=ONE

// ONE-NOT: nd.microbatch

// The count is one reduction over the labels of all microbatches.
// CHECK-LABEL: func.func @forward
// CHECK-SAME: %[[X:.*]]: tensor<4x2x8xf32> {nd.kind = "input", nd.name = "x"}, %[[LABELS:.*]]: tensor<4x2xi64>
// CHECK-SAME: %[[W:.*]]: tensor<8xf32> {nd.kind = "weight"
func.func @forward(%x: tensor<2x8xf32> {nd.kind = "input", nd.name = "x"},
    %labels: tensor<2xi64> {nd.kind = "input", nd.name = "labels"}, %w: tensor<8xf32> {nd.kind = "weight", nd.name = "w"})
    -> (tensor<f32> {nd.kind = "loss_sum"}, tensor<i32> {nd.kind = "loss_count"}) {
  // CHECK: %[[PART:.*]] = nd.microbatch %[[X]] : tensor<4x2x8xf32> -> tensor<2x8xf32>
  // CHECK: arith.mulf %[[PART]]
  // CHECK: %[[SUM:.*]] = nd.reduce sum %{{.*}} dims = [0, 1] : tensor<2x8xf32> -> tensor<f32>
  // CHECK: %[[VALID:.*]] = arith.cmpi ne, %[[LABELS]], %{{.*}} : tensor<4x2xi64>
  // CHECK: %[[ONES:.*]] = arith.extui %[[VALID]] : tensor<4x2xi1> to tensor<4x2xi32>
  // CHECK: %[[COUNT:.*]] = nd.reduce sum %[[ONES]] dims = [0, 1] : tensor<4x2xi32> -> tensor<i32>
  // CHECK: return %[[SUM]], %[[COUNT]]
  %ignored = arith.constant dense<-100> : tensor<2xi64>
  %rows = nd.broadcast %w dims = [1] : tensor<8xf32> -> tensor<2x8xf32>
  %0 = arith.mulf %x, %rows : tensor<2x8xf32>
  %1 = nd.reduce sum %0 dims = [0, 1] : tensor<2x8xf32> -> tensor<f32>
  %2 = arith.cmpi ne, %labels, %ignored : tensor<2xi64>
  %3 = arith.extui %2 : tensor<2xi1> to tensor<2xi32>
  %4 = nd.reduce sum %3 dims = [0] : tensor<2xi32> -> tensor<i32>
  return %1, %4 : tensor<f32>, tensor<i32>
}

// -----

// A count that does not depend on the inputs counts once per microbatch.
// CHECK-LABEL: func.func @forward
func.func @forward(%x: tensor<2xf32> {nd.kind = "input", nd.name = "x"}, %w: tensor<2xf32> {nd.kind = "weight", nd.name = "w"})
    -> (tensor<f32> {nd.kind = "loss_sum"}, tensor<i32> {nd.kind = "loss_count"}) {
  // CHECK: %[[COUNT:.*]] = arith.constant dense<8> : tensor<i32>
  // CHECK: return %{{.*}}, %[[COUNT]]
  %two = arith.constant dense<2> : tensor<i32>
  %0 = arith.mulf %x, %w : tensor<2xf32>
  %1 = nd.reduce sum %0 dims = [0] : tensor<2xf32> -> tensor<f32>
  return %1, %two : tensor<f32>, tensor<i32>
}

// -----

func.func @forward(%ids: tensor<2xi64> {nd.kind = "input", nd.name = "ids"}, %t: tensor<8xf32> {nd.kind = "weight", nd.name = "t"})
    -> (tensor<f32> {nd.kind = "loss_sum"}, tensor<f32> {nd.kind = "loss_count"}) {
  // expected-error@+1 {{is part of how the loss counts its tokens, and cannot be computed for all microbatches at once}}
  %0 = nd.take %t[%ids] : tensor<8xf32>, tensor<2xi64> -> tensor<2xf32>
  %1 = nd.reduce sum %0 dims = [0] : tensor<2xf32> -> tensor<f32>
  return %1, %1 : tensor<f32>, tensor<f32>
}
