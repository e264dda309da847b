// RUN: nd-opt %s --nd-build-backward --canonicalize --cse -split-input-file | FileCheck %s

// CHECK-LABEL: func.func @forward
func.func @forward(%a: tensor<f32> {nd.kind = "weight", nd.name = "a"}, %b: tensor<f32> {nd.kind = "weight", nd.name = "b"}, %count: tensor<i64>)
    -> (tensor<f32> {nd.kind = "loss_sum"}, tensor<i64> {nd.kind = "loss_count"}) {
  // CHECK: %[[Y:.*]] = arith.divf %arg0, %arg1
  // CHECK: %[[G:.*]] = arith.divf %cst
  // CHECK: %[[DA:.*]] = arith.divf %[[G]], %arg1
  // CHECK: %[[N:.*]] = arith.negf %[[G]]
  // CHECK: %[[Q:.*]] = arith.divf %[[Y]], %arg1
  // CHECK: %[[DB:.*]] = arith.mulf %[[N]], %[[Q]]
  // CHECK: return %{{.*}}, %{{.*}}, %[[DA]], %[[DB]]
  %0 = arith.divf %a, %b : tensor<f32>
  return %0, %count : tensor<f32>, tensor<i64>
}

// -----

// torch.maximum: half each at a tie.
// CHECK-LABEL: func.func @forward
func.func @forward(%a: tensor<f32> {nd.kind = "weight", nd.name = "a"}, %b: tensor<f32>, %count: tensor<i64>)
    -> (tensor<f32> {nd.kind = "loss_sum"}, tensor<i64> {nd.kind = "loss_count"}) {
  // CHECK: %[[G:.*]] = arith.divf %cst
  // CHECK: %[[WINS:.*]] = arith.cmpf oge, %arg0, %arg1
  // CHECK: %[[KEPT:.*]] = arith.select %[[WINS]], %[[G]]
  // CHECK: %[[TIE:.*]] = arith.cmpf oeq, %arg0, %arg1
  // CHECK: %[[HALF:.*]] = arith.mulf %[[G]]
  // CHECK: arith.select %[[TIE]], %[[HALF]], %[[KEPT]]
  %0 = arith.maximumf %a, %b : tensor<f32>
  return %0, %count : tensor<f32>, tensor<i64>
}

// -----

// relu: nothing at zero. clamp: everything at the bound.
// CHECK-LABEL: func.func @forward
func.func @forward(%a: tensor<f32> {nd.kind = "weight", nd.name = "a"}, %count: tensor<i64>)
    -> (tensor<f32> {nd.kind = "loss_sum"}, tensor<i64> {nd.kind = "loss_count"}) {
  // CHECK: %[[RELU:.*]] = arith.maximumf %arg0
  // CHECK: %[[INSIDE:.*]] = arith.cmpf ole, %[[RELU]]
  // CHECK: %[[G:.*]] = arith.select %[[INSIDE]]
  // CHECK: %[[POSITIVE:.*]] = arith.cmpf ogt, %arg0
  // CHECK: arith.select %[[POSITIVE]], %[[G]]
  %zero = arith.constant dense<0.0> : tensor<f32>
  %six = arith.constant dense<6.0> : tensor<f32>
  %0 = arith.maximumf %a, %zero : tensor<f32>
  %1 = arith.minimumf %0, %six : tensor<f32>
  return %1, %count : tensor<f32>, tensor<i64>
}

// -----

// A branch that was not taken gets zero, not 0 times its gradient: an infinity there stays there.
// CHECK-LABEL: func.func @forward
func.func @forward(%a: tensor<f32> {nd.kind = "weight", nd.name = "a"}, %b: tensor<f32> {nd.kind = "weight", nd.name = "b"}, %c: tensor<i1>, %count: tensor<i64>)
    -> (tensor<f32> {nd.kind = "loss_sum"}, tensor<i64> {nd.kind = "loss_count"}) {
  // CHECK-DAG: %[[ZERO:.*]] = arith.constant dense<0.000000e+00>
  // CHECK: arith.select %arg2, %arg0, %arg1
  // CHECK: %[[DA:.*]] = arith.select %arg2, %[[G:.*]], %[[ZERO]]
  // CHECK: %[[DB:.*]] = arith.select %arg2, %[[ZERO]], %[[G]]
  // CHECK: return %{{.*}}, %{{.*}}, %[[DA]], %[[DB]]
  %0 = arith.select %c, %a, %b : tensor<i1>, tensor<f32>
  return %0, %count : tensor<f32>, tensor<i64>
}

// -----

// Through a wider type and back.
// CHECK-LABEL: func.func @forward
func.func @forward(%a: tensor<bf16> {nd.kind = "weight", nd.name = "a"}, %count: tensor<i64>)
    -> (tensor<f32> {nd.kind = "loss_sum"}, tensor<i64> {nd.kind = "loss_count"}) {
  // CHECK: %[[G:.*]] = arith.mulf
  // CHECK: arith.truncf %{{.*}} : tensor<f32> to tensor<bf16>
  %0 = arith.extf %a : tensor<bf16> to tensor<f32>
  %1 = arith.mulf %0, %0 : tensor<f32>
  return %1, %count : tensor<f32>, tensor<i64>
}
