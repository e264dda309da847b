// RUN: nd-opt %s --canonicalize -split-input-file | FileCheck %s

// CHECK-LABEL: func.func @sum_of_three_parts
// CHECK-SAME: (%[[Q:.*]]: tensor<2x3xf32>, %[[K:.*]]: tensor<2x4xf32>, %[[V:.*]]: tensor<2x5xf32>)
func.func @sum_of_three_parts(%q: tensor<2x3xf32>, %k: tensor<2x4xf32>, %v: tensor<2x5xf32>) -> tensor<2x12xf32> {
  // CHECK-NEXT: %[[R:.*]] = nd.concat %[[Q]], %[[K]], %[[V]] dim = 1 : tensor<2x3xf32>, tensor<2x4xf32>, tensor<2x5xf32> -> tensor<2x12xf32>
  // CHECK-NEXT: return %[[R]]
  %zero = arith.constant dense<0.0> : tensor<f32>
  %0 = nd.pad %q, %zero low = [0, 0] high = [0, 9] interior = [0, 0] : tensor<2x3xf32>, tensor<f32> -> tensor<2x12xf32>
  %1 = nd.pad %k, %zero low = [0, 3] high = [0, 5] interior = [0, 0] : tensor<2x4xf32>, tensor<f32> -> tensor<2x12xf32>
  %2 = nd.pad %v, %zero low = [0, 7] high = [0, 0] interior = [0, 0] : tensor<2x5xf32>, tensor<f32> -> tensor<2x12xf32>
  %3 = arith.addf %2, %0 : tensor<2x12xf32>
  %4 = arith.addf %3, %1 : tensor<2x12xf32>
  return %4 : tensor<2x12xf32>
}

// -----

// Balanced tree of additions, four parts.
// CHECK-LABEL: func.func @sum_of_four_parts
func.func @sum_of_four_parts(%a: tensor<1xf32>, %b: tensor<2xf32>, %c: tensor<1xf32>, %d: tensor<1xf32>) -> tensor<5xf32> {
  // CHECK-NEXT: %[[R:.*]] = nd.concat %arg0, %arg1, %arg2, %arg3 dim = 0
  // CHECK-NEXT: return %[[R]]
  %zero = arith.constant dense<0.0> : tensor<f32>
  %0 = nd.pad %a, %zero low = [0] high = [4] interior = [0] : tensor<1xf32>, tensor<f32> -> tensor<5xf32>
  %1 = nd.pad %b, %zero low = [1] high = [2] interior = [0] : tensor<2xf32>, tensor<f32> -> tensor<5xf32>
  %2 = nd.pad %c, %zero low = [3] high = [1] interior = [0] : tensor<1xf32>, tensor<f32> -> tensor<5xf32>
  %3 = nd.pad %d, %zero low = [4] high = [0] interior = [0] : tensor<1xf32>, tensor<f32> -> tensor<5xf32>
  %4 = arith.addf %0, %2 : tensor<5xf32>
  %5 = arith.addf %3, %1 : tensor<5xf32>
  %6 = arith.addf %4, %5 : tensor<5xf32>
  return %6 : tensor<5xf32>
}

// -----

// Elements that no part fills are zero.
// CHECK-LABEL: func.func @sum_with_gaps
func.func @sum_with_gaps(%a: tensor<1xf32>, %b: tensor<2xf32>) -> tensor<9xf32> {
  // CHECK-DAG: %[[ONE:.*]] = arith.constant dense<0.000000e+00> : tensor<1xf32>
  // CHECK-DAG: %[[TWO:.*]] = arith.constant dense<0.000000e+00> : tensor<2xf32>
  // CHECK-DAG: %[[THREE:.*]] = arith.constant dense<0.000000e+00> : tensor<3xf32>
  // CHECK: nd.concat %[[ONE]], %arg1, %[[TWO]], %arg0, %[[THREE]] dim = 0
  %zero = arith.constant dense<0.0> : tensor<f32>
  %0 = nd.pad %a, %zero low = [5] high = [3] interior = [0] : tensor<1xf32>, tensor<f32> -> tensor<9xf32>
  %1 = nd.pad %b, %zero low = [1] high = [6] interior = [0] : tensor<2xf32>, tensor<f32> -> tensor<9xf32>
  %2 = arith.addf %0, %1 : tensor<9xf32>
  return %2 : tensor<9xf32>
}

// -----

// One other term, in the middle of the sum.
// CHECK-LABEL: func.func @sum_with_another_term
func.func @sum_with_another_term(%a: tensor<1xf32>, %b: tensor<2xf32>, %c: tensor<3xf32>) -> tensor<3xf32> {
  // CHECK-NEXT: %[[C:.*]] = nd.concat %arg0, %arg1 dim = 0
  // CHECK-NEXT: %[[R:.*]] = arith.addf %arg2, %[[C]]
  // CHECK-NEXT: return %[[R]]
  %zero = arith.constant dense<0.0> : tensor<f32>
  %0 = nd.pad %a, %zero low = [0] high = [2] interior = [0] : tensor<1xf32>, tensor<f32> -> tensor<3xf32>
  %1 = nd.pad %b, %zero low = [1] high = [0] interior = [0] : tensor<2xf32>, tensor<f32> -> tensor<3xf32>
  %2 = arith.addf %0, %c : tensor<3xf32>
  %3 = arith.addf %2, %1 : tensor<3xf32>
  return %3 : tensor<3xf32>
}

// -----

// Not concatenations: parts that overlap, padding that is not zero, and two other terms whose order would change.
// CHECK-LABEL: func.func @other_sums
// CHECK-NOT: nd.concat
func.func @other_sums(%a: tensor<2xf32>, %b: tensor<2xf32>, %c: tensor<3xf32>, %d: tensor<1xf32>) -> (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) {
  %zero = arith.constant dense<0.0> : tensor<f32>
  %one = arith.constant dense<1.0> : tensor<f32>
  %left = nd.pad %a, %zero low = [0] high = [1] interior = [0] : tensor<2xf32>, tensor<f32> -> tensor<3xf32>
  %right = nd.pad %b, %zero low = [1] high = [0] interior = [0] : tensor<2xf32>, tensor<f32> -> tensor<3xf32>
  %ones = nd.pad %d, %one low = [2] high = [0] interior = [0] : tensor<1xf32>, tensor<f32> -> tensor<3xf32>
  %last = nd.pad %d, %zero low = [2] high = [0] interior = [0] : tensor<1xf32>, tensor<f32> -> tensor<3xf32>
  %0 = arith.addf %left, %right : tensor<3xf32>
  %1 = arith.addf %left, %ones : tensor<3xf32>
  %2 = arith.addf %left, %c : tensor<3xf32>
  %3 = arith.addf %2, %ones : tensor<3xf32>
  %4 = arith.addf %3, %last : tensor<3xf32>
  return %0, %1, %4 : tensor<3xf32>, tensor<3xf32>, tensor<3xf32>
}

// -----

// CHECK-LABEL: func.func @scatter_into_addend
func.func @scatter_into_addend(%x: tensor<5x4xf32>, %i: tensor<3xi64>, %u: tensor<3x4xf32>) -> tensor<5x4xf32> {
  // CHECK-NEXT: %[[R:.*]] = nd.scatter_add %arg1, %arg2 init %arg0 : tensor<5x4xf32> {padding_idx = 1 : i64} :
  // CHECK-NEXT: return %[[R]]
  %0 = nd.scatter_add %i, %u {padding_idx = 1} : tensor<3xi64>, tensor<3x4xf32> -> tensor<5x4xf32>
  %1 = arith.addf %0, %x : tensor<5x4xf32>
  return %1 : tensor<5x4xf32>
}

// CHECK-LABEL: func.func @scatter_with_other_readers
func.func @scatter_with_other_readers(%x: tensor<5xf32>, %i: tensor<3xi64>, %u: tensor<3xf32>) -> (tensor<5xf32>, tensor<5xf32>) {
  // CHECK-NEXT: nd.scatter_add %arg1, %arg2 :
  // CHECK-NEXT: arith.addf
  %0 = nd.scatter_add %i, %u : tensor<3xi64>, tensor<3xf32> -> tensor<5xf32>
  %1 = arith.addf %x, %0 : tensor<5xf32>
  return %0, %1 : tensor<5xf32>, tensor<5xf32>
}
