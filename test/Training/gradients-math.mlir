// RUN: nd-opt %s --nd-build-backward --canonicalize --cse -split-input-file | FileCheck %s

// g (1 - y^2), from the result.
// CHECK-LABEL: func.func @forward
func.func @forward(%a: tensor<f32> {nd.kind = "weight", nd.name = "a"}, %count: tensor<i64>)
    -> (tensor<f32> {nd.kind = "loss_sum"}, tensor<i64> {nd.kind = "loss_count"}) {
  // CHECK: %[[Y:.*]] = math.tanh %arg0
  // CHECK: %[[G:.*]] = arith.divf %cst
  // CHECK: %[[YY:.*]] = arith.mulf %[[Y]], %[[Y]]
  // CHECK: %[[SLOPE:.*]] = arith.subf %{{.*}}, %[[YY]]
  // CHECK: arith.mulf %[[G]], %[[SLOPE]]
  %0 = math.tanh %a : tensor<f32>
  return %0, %count : tensor<f32>, tensor<i64>
}

// -----

// GELU's cube needs no pow: g (3 x^2).
// CHECK-LABEL: func.func @forward
func.func @forward(%a: tensor<f32> {nd.kind = "weight", nd.name = "a"}, %count: tensor<i64>)
    -> (tensor<f32> {nd.kind = "loss_sum"}, tensor<i64> {nd.kind = "loss_count"}) {
  // CHECK-DAG: %[[THREE:.*]] = arith.constant dense<3.000000e+00>
  // CHECK: %[[SQUARE:.*]] = arith.mulf %arg0, %arg0
  // CHECK: %[[SLOPE:.*]] = arith.mulf %[[SQUARE]], %[[THREE]]
  // CHECK: arith.mulf %{{.*}}, %[[SLOPE]]
  // CHECK-NOT: math.powf
  %three = arith.constant dense<3.0> : tensor<f32>
  %0 = math.powf %a, %three : tensor<f32>
  return %0, %count : tensor<f32>, tensor<i64>
}

// -----

// A trainable exponent: y log(x), but flat at x = 0 where the exponent is not negative; a trainable base: zero where the exponent is.
// CHECK-LABEL: func.func @forward
func.func @forward(%a: tensor<f32> {nd.kind = "weight", nd.name = "a"}, %b: tensor<f32> {nd.kind = "weight", nd.name = "b"}, %count: tensor<i64>)
    -> (tensor<f32> {nd.kind = "loss_sum"}, tensor<i64> {nd.kind = "loss_count"}) {
  // CHECK-DAG: %[[ZERO:.*]] = arith.constant dense<0.000000e+00>
  // CHECK: %[[Y:.*]] = math.powf %arg0, %arg1
  // CHECK: %[[FLATBASE:.*]] = arith.cmpf oeq, %arg1, %[[ZERO]]
  // CHECK: %[[DA:.*]] = arith.select %[[FLATBASE]], %[[ZERO]]
  // CHECK: %[[ATZERO:.*]] = arith.cmpf oeq, %arg0, %[[ZERO]]
  // CHECK: %[[NOTNEGATIVE:.*]] = arith.cmpf oge, %arg1, %[[ZERO]]
  // CHECK: %[[FLAT:.*]] = arith.andi %[[ATZERO]], %[[NOTNEGATIVE]]
  // CHECK: %[[LOG:.*]] = math.log %arg0
  // CHECK: %[[SLOPE:.*]] = arith.mulf %[[Y]], %[[LOG]]
  // CHECK: %[[DB:.*]] = arith.select %[[FLAT]], %[[ZERO]]
  // CHECK: return %{{.*}}, %{{.*}}, %[[DA]], %[[DB]]
  %0 = math.powf %a, %b : tensor<f32>
  return %0, %count : tensor<f32>, tensor<i64>
}

// -----

// The sign of zero is zero.
// CHECK-LABEL: func.func @forward
func.func @forward(%a: tensor<f32> {nd.kind = "weight", nd.name = "a"}, %count: tensor<i64>)
    -> (tensor<f32> {nd.kind = "loss_sum"}, tensor<i64> {nd.kind = "loss_count"}) {
  // CHECK: %[[NEGATIVE:.*]] = arith.cmpf olt, %arg0
  // CHECK: %[[POSITIVE:.*]] = arith.cmpf ogt, %arg0
  // CHECK: %[[ELSE:.*]] = arith.select %[[NEGATIVE]]
  // CHECK: arith.select %[[POSITIVE]], %{{.*}}, %[[ELSE]]
  %0 = math.absf %a : tensor<f32>
  return %0, %count : tensor<f32>, tensor<i64>
}
