// RUN: nd-opt %s --nd-add-optimizer="keep-gradients=true no-decay=w" | FileCheck %s

// State and gradient of a part are parts of the same whole, whose name a glob may say.
// CHECK-LABEL: func.func @step
// CHECK-SAME: tensor<2x2xf32> {nd.kind = "exp_avg", nd.name = "w#0", nd.part = {dim = 0 : i64, name = "w", offset = 0 : i64, size = 5 : i64}}
// CHECK-SAME: tensor<2x2xf32> {nd.kind = "exp_avg_sq", nd.name = "w#0", nd.part = {dim = 0 : i64, name = "w", offset = 0 : i64, size = 5 : i64}}
// CHECK-SAME: tensor<3x2xf32> {nd.kind = "exp_avg", nd.name = "w#1", nd.part = {dim = 0 : i64, name = "w", offset = 2 : i64, size = 5 : i64}}
// CHECK-SAME: tensor<2x2xf32> {nd.kind = "gradient", nd.name = "w#0", nd.part = {dim = 0 : i64, name = "w", offset = 0 : i64, size = 5 : i64}}
// CHECK-SAME: tensor<3x2xf32> {nd.kind = "gradient", nd.name = "w#1", nd.part = {dim = 0 : i64, name = "w", offset = 2 : i64, size = 5 : i64}}
// CHECK-COUNT-2: nd.adamw {{.*}}weight_decay = 0.0
func.func @forward(%a: tensor<2x2xf32> {nd.kind = "weight", nd.name = "w#0", nd.part = {name = "w", dim = 0, offset = 0, size = 5}},
                   %b: tensor<3x2xf32> {nd.kind = "weight", nd.name = "w#1", nd.part = {name = "w", dim = 0, offset = 2, size = 5}},
                   %tokens: tensor<i64>, %loss: tensor<f32>)
    -> (tensor<f32> {nd.kind = "metric", nd.name = "loss"}, tensor<i64> {nd.kind = "metric", nd.name = "tokens"},
        tensor<2x2xf32> {nd.kind = "gradient", nd.name = "w#0"}, tensor<3x2xf32> {nd.kind = "gradient", nd.name = "w#1"}) {
  %0 = arith.addf %a, %a : tensor<2x2xf32>
  %1 = arith.addf %b, %b : tensor<3x2xf32>
  return %loss, %tokens, %0, %1 : tensor<f32>, tensor<i64>, tensor<2x2xf32>, tensor<3x2xf32>
}
