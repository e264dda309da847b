// RUN: nd-opt %s --nd-add-optimizer="no-decay=*.frozen_decay" | FileCheck %s
// RUN: nd-opt %s --nd-add-optimizer="clip=0 decay-all=true keep-gradients=true" | FileCheck %s --check-prefix=UNCLIPPED
// RUN: nd-opt %s --nd-add-optimizer="optimizer=sgd momentum=0.9 weight-decay=0.1" | FileCheck %s --check-prefix=MOMENTUM
// RUN: nd-opt %s --nd-add-optimizer="optimizer=sgd" | FileCheck %s --check-prefix=SGD

// CHECK-LABEL: func.func @step
// CHECK-SAME: %[[AM:[^:]*]]: tensor<2x2xf32> {nd.kind = "exp_avg", nd.name = "m.a"}, %[[AV:[^:]*]]: tensor<2x2xf32> {nd.kind = "exp_avg_sq", nd.name = "m.a"}
// CHECK-SAME: %[[LR:[^:]*]]: tensor<f32> {nd.kind = "scalar", nd.name = "lr"}, %[[B1:[^:]*]]: tensor<f32> {nd.kind = "scalar", nd.name = "bias1"}, %[[B2:[^:]*]]: tensor<f32> {nd.kind = "scalar", nd.name = "sqrt_bias2"})
// CHECK-SAME: -> (tensor<f32> {nd.kind = "metric", nd.name = "loss"}, tensor<f32> {nd.kind = "metric", nd.name = "grad_norm"}, tensor<i64> {nd.kind = "metric", nd.name = "tokens"}, tensor<i1> {nd.kind = "metric", nd.name = "applied"}
// CHECK-SAME: tensor<2x2xf32> {nd.kind = "weight", nd.name = "m.a"}, tensor<2x2xf32> {nd.kind = "exp_avg", nd.name = "m.a"}, tensor<2x2xf32> {nd.kind = "exp_avg_sq", nd.name = "m.a"}
// CHECK-NOT: "gradient"
// UNCLIPPED-LABEL: func.func @step
// UNCLIPPED-SAME: tensor<2x2xf32> {nd.kind = "gradient", nd.name = "m.a"}, tensor<2xf32> {nd.kind = "gradient", nd.name = "m.b"}
// MOMENTUM-LABEL: func.func @step
// MOMENTUM-SAME: %[[BUF:[^:]*]]: tensor<2x2xf32> {nd.kind = "momentum", nd.name = "m.a"}
// MOMENTUM-SAME: %[[LR:[^:]*]]: tensor<f32> {nd.kind = "scalar", nd.name = "lr"})
// MOMENTUM-SAME: tensor<2x2xf32> {nd.kind = "momentum", nd.name = "m.a"}
// SGD-LABEL: func.func @step
// SGD-NOT: "momentum"
func.func @forward(%a: tensor<2x2xf32> {nd.kind = "weight", nd.name = "m.a"}, %b: tensor<2xf32> {nd.kind = "weight", nd.name = "m.b"},
    %v: tensor<4xf32> {nd.kind = "weight", nd.name = "m.v", nd.rank = 2 : i64}, %t: tensor<2x2xf32> {nd.aliases = ["m.frozen_decay"], nd.kind = "weight", nd.name = "m.t"},
    %tokens: tensor<i64>, %loss: tensor<f32>)
    -> (tensor<f32> {nd.kind = "metric", nd.name = "loss"}, tensor<i64> {nd.kind = "metric", nd.name = "tokens"}, tensor<2x2xf32> {nd.kind = "gradient", nd.name = "m.a"},
        tensor<2xf32> {nd.kind = "gradient", nd.name = "m.b"}, tensor<4xf32> {nd.kind = "gradient", nd.name = "m.v"}, tensor<2x2xf32> {nd.kind = "gradient", nd.name = "m.t"}) {
  // Squares of all gradients, the clipping factor min(1, clip / (norm + 1e-6)), and the flag.
  // CHECK: %[[GA:.*]] = arith.addf %arg0, %arg0
  // CHECK: %[[SQUARE:.*]] = arith.mulf %[[GA]], %[[GA]]
  // CHECK: %[[SUMA:.*]] = nd.reduce sum %[[SQUARE]] dims = [0, 1]
  // CHECK: %[[TOTAL2:.*]] = arith.addf %[[SUMA]], %{{.*}} : tensor<f32>
  // CHECK: %[[TOTAL3:.*]] = arith.addf %[[TOTAL2]], %{{.*}} : tensor<f32>
  // CHECK: %[[TOTAL:.*]] = arith.addf %[[TOTAL3]], %{{.*}} : tensor<f32>
  // CHECK: %[[NORM:.*]] = math.sqrt %[[TOTAL]]
  // CHECK: %[[DIVISOR:.*]] = arith.addf %[[NORM]]
  // CHECK: %[[FACTOR:.*]] = arith.divf %{{.*}}, %[[DIVISOR]]
  // CHECK: %[[SCALE:.*]] = arith.minimumf %[[FACTOR]]
  // CHECK: %[[FINITE:.*]] = arith.cmpf olt, %[[NORM]]
  // CHECK: %[[APPLY:.*]] = arith.andi %{{.*}}, %[[FINITE]]
  // Weights with two dimensions in the user's model decay, whatever their shape here; a glob over any of their names overrides.
  // CHECK: nd.adamw %arg0 grad %[[GA]] moments %[[AM]], %[[AV]] scalars %[[LR]], %[[B1]], %[[B2]], %[[SCALE]], %[[APPLY]]
  // CHECK-SAME: {beta1 = 9.000000e-01 : f64, beta2 = 0.99899999999999999 : f64, eps = 1.000000e-08 : f64, weight_decay = 1.000000e-02 : f64}
  // CHECK: nd.adamw %arg1 {{.*}} weight_decay = 0.000000e+00 : f64}
  // CHECK: nd.adamw %arg2 {{.*}} weight_decay = 1.000000e-02 : f64}
  // CHECK: nd.adamw %arg3 {{.*}} weight_decay = 0.000000e+00 : f64}

  // Without clipping an update waits for its gradient and the last reader of the weight, not for the norm.
  // UNCLIPPED: %[[APPLY:.*]] = arith.cmpi sgt, %arg4
  // UNCLIPPED: %[[ONE:.*]] = arith.constant dense<1.000000e+00> : tensor<f32>
  // UNCLIPPED: nd.adamw %arg1 {{.*}} %[[ONE]], %[[APPLY]] {{.*}} weight_decay = 1.000000e-02 : f64}
  // UNCLIPPED: nd.adamw %arg0
  // UNCLIPPED: math.sqrt

  // MOMENTUM: nd.sgd %arg0 grad %{{.*}} momentum %[[BUF]] scalars %[[LR]]
  // MOMENTUM-SAME: {momentum = 9.000000e-01 : f64, weight_decay = 1.000000e-01 : f64}
  // MOMENTUM: nd.sgd %arg1 {{.*}} weight_decay = 0.000000e+00 : f64}
  // SGD: nd.sgd %arg0 grad %{{[^ ]*}} scalars
  %gb = arith.addf %b, %b : tensor<2xf32>
  %ga = arith.addf %a, %a : tensor<2x2xf32>
  %last = arith.mulf %a, %a : tensor<2x2xf32>
  %gt = arith.addf %t, %last : tensor<2x2xf32>
  %gv = arith.addf %v, %v : tensor<4xf32>
  return %loss, %tokens, %ga, %gb, %gv, %gt : tensor<f32>, tensor<i64>, tensor<2x2xf32>, tensor<2xf32>, tensor<4xf32>, tensor<2x2xf32>
}
