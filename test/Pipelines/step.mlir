// RUN: nd-opt --train %s | FileCheck %s
// RUN: nd-opt --lr=0.5 - < %s | FileCheck %s --check-prefix=LR
// RUN: nd-opt --train %s -o %t && nd-opt %t | FileCheck %s
// RUN: nd-opt --forward-only %s | FileCheck %s --check-prefix=FORWARD
// RUN: nd-opt --optimizer=sgd --momentum=0.9 --clip=0 --schedule=cosine --warmup=2 --min-lr=1e-5 --total-steps=9 --seed=3 %s | FileCheck %s --check-prefix=SGD
// RUN: nd-opt --train --nd-record-step='record={after = true}' %s | FileCheck %s --check-prefix=AFTER
// RUN: nd-opt %s | FileCheck %s --check-prefix=PLAIN

// A whole model becomes a whole step; its options stay with it.
// CHECK: nd.step = {beta1 = 9.000000e-01 : f64, beta2 = 0.99899999999999999 : f64, clip = 1.000000e+00 : f64, dtype = "f32", eps = 1.000000e-08 : f64, lr = 1.000000e-04 : f64, microbatches = 1 : i64, min_lr = 0.000000e+00 : f64, optimizer = "adamw", schedule = "constant", seed = 0 : i64, total_steps = 0 : i64, warmup = 0 : i64, weight_decay = 1.000000e-02 : f64}
// CHECK-LABEL: func.func @step
// CHECK-SAME: {nd.bound = 7 : i64, nd.kind = "input", nd.name = "labels"}
// CHECK: nd.take
// CHECK: nd.softmax_cross_entropy
// CHECK: nd.softmax_cross_entropy_grad
// CHECK: nd.scatter_add
// CHECK: nd.adamw
// CHECK: return
// CHECK-NOT: @forward

// LR: lr = 5.000000e-01 : f64
// LR: func.func @step

// FORWARD-NOT: nd.step
// FORWARD: func.func @forward
// FORWARD-NOT: nd.softmax_cross_entropy

// SGD: nd.step = {clip = 0.000000e+00 : f64, dtype = "f32", lr = 1.000000e-04 : f64, microbatches = 1 : i64, min_lr = 1.000000e-05 : f64, momentum = {{.*}}, optimizer = "sgd", schedule = "cosine", seed = 3 : i64, total_steps = 9 : i64, warmup = 2 : i64, weight_decay
// SGD: nd.sgd

// Passes that are named as well run afterwards.
// AFTER: nd.step = {after = true}
// AFTER: func.func @step

// PLAIN: func.func @forward
module attributes {nd.model = {ignore_index = -100 : i64}} {
  func.func @forward(%ids: tensor<1x3xi64> {nd.bound = 7 : i64, nd.kind = "input", nd.name = "input_ids"}, %w: tensor<7x4xf32> {nd.kind = "weight", nd.name = "w"})
      -> (tensor<1x3x7xf32> {nd.kind = "logits"}) {
    %0 = nd.take %w[%ids] : tensor<7x4xf32>, tensor<1x3xi64> -> tensor<1x3x4xf32>
    %1 = nd.dot_general %0, %w contract = [2] x [1] : tensor<1x3x4xf32>, tensor<7x4xf32> -> tensor<1x3x7xf32>
    return %1 : tensor<1x3x7xf32>
  }
}
