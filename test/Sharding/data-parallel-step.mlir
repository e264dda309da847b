// RUN: nd-opt %s -nd-annotate=shard=dp2 -nd-propagate-sharding -nd-insert-reshards -nd-verify-sharding -nd-partition \
// RUN:   -nd-verify-sharding -nd-combine-collectives -cse -nd-verify-sharding | FileCheck %s

// A whole step: the loss and the count of tokens are all-reduced numbers (the count before backward needs it), the gradients
// one all-reduce behind the last of them, the norm comes from reduced gradients, and there is nothing else.

// CHECK: nd.mesh @mesh axes [#nd.axis<"dp" = 2, replicate>]
// CHECK-LABEL: func.func @step
// CHECK-SAME: %[[X:[^:]*]]: tensor<4x16xf32> {nd.global_shape = array<i64: 8, 16>, nd.kind = "input", nd.name = "x", nd.sharding = #nd.sharding<@mesh, [{"dp"}, {}]>}
// CHECK-SAME: tensor<16x10xf32> {nd.global_shape = array<i64: 16, 10>, nd.kind = "weight", nd.name = "w", nd.sharding = #nd.sharding<@mesh, [{}, {}]>}
// CHECK: %[[SUM:.*]] = nd.reduce sum %{{.*}} dims = [0] : tensor<4xf32> -> tensor<f32>
// CHECK: %[[LOSS:.*]] = nd.all_reduce sum %[[SUM]] over @mesh ["dp"]
// CHECK-SAME: names = ["loss"]
// CHECK-SAME: reason = "'nd.reduce' combines elements that lie on ranks along dp"
// CHECK: %[[VALID:.*]] = nd.reduce sum %{{.*}} dims = [0] : tensor<4xf32> -> tensor<f32>
// CHECK: %[[COUNT:.*]] = nd.all_reduce sum %[[VALID]]
// CHECK: arith.maximumf %[[COUNT]]
// CHECK: nd.softmax_cross_entropy_grad
// CHECK: %[[DB:.*]] = nd.reduce sum
// CHECK: %[[DW:.*]] = nd.dot_general
// CHECK: %[[G:.*]]:2 = nd.all_reduce sum %[[DB]], %[[DW]] over @mesh ["dp"] instance = {{.*}} names = ["gradient of b", "gradient of w"]
// CHECK-SAME: reason = "'nd.reduce' combines elements that lie on ranks along dp; 'nd.dot_general' combines elements that lie on ranks along dp"
// CHECK: arith.mulf %[[G]]#1, %[[G]]#1
// CHECK: math.sqrt
// CHECK: nd.sgd %{{.*}} grad %[[G]]#1
// CHECK-NOT: nd.all_reduce
module attributes {nd.model = {batch = 8 : i64}} {
func.func @step(%x: tensor<8x16xf32> {nd.kind = "input", nd.name = "x"},
                %t: tensor<8xi64> {nd.kind = "input", nd.name = "labels"},
                %w: tensor<16x10xf32> {nd.kind = "weight", nd.name = "w"},
                %b: tensor<10xf32> {nd.kind = "weight", nd.name = "b"},
                %lr: tensor<f32> {nd.kind = "scalar", nd.name = "lr"})
    -> (tensor<f32> {nd.kind = "metric", nd.name = "loss"}, tensor<f32> {nd.kind = "metric", nd.name = "grad_norm"},
        tensor<16x10xf32> {nd.kind = "weight", nd.name = "w"}, tensor<10xf32> {nd.kind = "weight", nd.name = "b"}) {
  %ignore = arith.constant dense<-100> : tensor<8xi64>
  %zero = arith.constant dense<0.0> : tensor<f32>
  %one = arith.constant dense<1.0> : tensor<f32>
  %true = arith.constant dense<true> : tensor<i1>
  %y = nd.dot_general %x, %w contract = [1] x [0] : tensor<8x16xf32>, tensor<16x10xf32> -> tensor<8x10xf32>
  %bb = nd.broadcast %b dims = [1] : tensor<10xf32> -> tensor<8x10xf32>
  %z = arith.addf %y, %bb : tensor<8x10xf32>
  %losses, %lse = nd.softmax_cross_entropy %z, %t ignore = -100 : tensor<8x10xf32>, tensor<8xi64> -> tensor<8xf32>
  %sum = nd.reduce sum %losses dims = [0] : tensor<8xf32> -> tensor<f32>
  %valid = arith.cmpi ne, %t, %ignore : tensor<8xi64>
  %vf = arith.uitofp %valid : tensor<8xi1> to tensor<8xf32>
  %count = nd.reduce sum %vf dims = [0] : tensor<8xf32> -> tensor<f32>
  %c1 = arith.maximumf %count, %one : tensor<f32>
  %loss = arith.divf %sum, %c1 : tensor<f32>
  %inv = arith.divf %one, %c1 : tensor<f32>
  %dl = nd.broadcast %inv dims = [] : tensor<f32> -> tensor<8xf32>
  %dz = nd.softmax_cross_entropy_grad %z, %t, %lse, %dl ignore = -100 : tensor<8x10xf32>, tensor<8xi64>, tensor<8xf32>
  %db = nd.reduce sum %dz dims = [0] : tensor<8x10xf32> -> tensor<10xf32>
  %dw = nd.dot_general %x, %dz contract = [0] x [0] : tensor<8x16xf32>, tensor<8x10xf32> -> tensor<16x10xf32>
  %dw2 = arith.mulf %dw, %dw : tensor<16x10xf32>
  %nw = nd.reduce sum %dw2 dims = [0, 1] : tensor<16x10xf32> -> tensor<f32>
  %db2 = arith.mulf %db, %db : tensor<10xf32>
  %nb = nd.reduce sum %db2 dims = [0] : tensor<10xf32> -> tensor<f32>
  %n2 = arith.addf %nw, %nb : tensor<f32>
  %n = math.sqrt %n2 : tensor<f32>
  %w1 = nd.sgd %w grad %dw scalars %lr, %one, %true {momentum = 0.0 : f64, weight_decay = 0.0 : f64} : tensor<16x10xf32>, tensor<16x10xf32>, tensor<f32>, tensor<i1>
  %b1 = nd.sgd %b grad %db scalars %lr, %one, %true {momentum = 0.0 : f64, weight_decay = 0.0 : f64} : tensor<10xf32>, tensor<10xf32>, tensor<f32>, tensor<i1>
  return %loss, %n, %w1, %b1 : tensor<f32>, tensor<f32>, tensor<16x10xf32>, tensor<10xf32>
}
}
