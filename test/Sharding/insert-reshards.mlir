// RUN: nd-opt %s -nd-propagate-sharding -nd-insert-reshards -nd-verify-sharding -split-input-file | FileCheck %s

nd.mesh @mesh axes [#nd.axis<"dp" = 2, replicate>]

// The gradient of a tied weight: both partial gradients are added first, and their sum is reduced once, for the norm and the
// result together.
// CHECK-LABEL: func.func @tied
func.func @tied(%x: tensor<4x8xf32> {nd.sharding = #nd.sharding<@mesh, [{"dp"}, {}]>},
                %d: tensor<4x8xf32> {nd.sharding = #nd.sharding<@mesh, [{"dp"}, {}]>})
    -> (tensor<8x8xf32> {nd.kind = "gradient", nd.name = "w", nd.sharding = #nd.sharding<@mesh, [{}, {}]>},
        tensor<f32> {nd.kind = "metric", nd.name = "norm", nd.sharding = #nd.sharding<@mesh, []>}) {
  // CHECK: %[[A:.*]] = nd.dot_general {{.*}} -> tensor<8x8xf32, #nd.sharding<@mesh, [{}, {}], unreduced = sum {"dp"}>>
  %0 = nd.dot_general %x, %d contract = [0] x [0] : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<8x8xf32>
  %1 = nd.dot_general %d, %d contract = [0] x [0] : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<8x8xf32>
  // CHECK: %[[B:.*]] = nd.transpose {{.*}}unreduced = sum {"dp"}
  %2 = nd.transpose %1 permutation = [1, 0] : tensor<8x8xf32> -> tensor<8x8xf32>
  // CHECK: %[[SUM:.*]] = arith.addf %[[A]], %[[B]] : {{.*}}unreduced = sum {"dp"}
  // CHECK-NEXT: %[[R:.*]] = nd.reshard %[[SUM]] instance = 1 name = "w" reason = "'nd.dot_general' combines elements that lie on ranks along dp"
  %3 = arith.addf %0, %2 : tensor<8x8xf32>
  // CHECK: arith.mulf %[[R]], %[[R]]
  %4 = arith.mulf %3, %3 : tensor<8x8xf32>
  %5 = nd.reduce sum %4 dims = [0, 1] : tensor<8x8xf32> -> tensor<f32>
  // CHECK-NOT: nd.reshard
  // CHECK: return %[[R]]
  return %3, %5 : tensor<8x8xf32>, tensor<f32>
}

// -----

nd.mesh @mesh axes [#nd.axis<"dp" = 2, replicate>]

// A product by a number is linear, so the reduction waits for the sum; a product by a tensor is not.
// CHECK-LABEL: func.func @scaled
func.func @scaled(%x: tensor<4x8xf32> {nd.sharding = #nd.sharding<@mesh, [{"dp"}, {}]>},
                  %s: tensor<f32> {nd.sharding = #nd.sharding<@mesh, []>},
                  %v: tensor<8xf32> {nd.sharding = #nd.sharding<@mesh, [{}]>})
    -> (tensor<8xf32> {nd.sharding = #nd.sharding<@mesh, [{}]>}, tensor<8xf32> {nd.sharding = #nd.sharding<@mesh, [{}]>}) {
  // CHECK: %[[A:.*]] = nd.reduce sum
  %0 = nd.reduce sum %x dims = [0] : tensor<4x8xf32> -> tensor<8xf32>
  %1 = nd.broadcast %s dims = [] : tensor<f32> -> tensor<8xf32>
  // CHECK: %[[B:.*]] = nd.scale %[[A]], %{{.*}} : tensor<8xf32, #nd.sharding<@mesh, [{}], unreduced = sum {"dp"}>>, tensor<f32, #nd.sharding<@mesh, []>>
  // CHECK-NEXT: %[[R:.*]] = nd.reshard %[[B]]
  %2 = arith.mulf %0, %1 : tensor<8xf32>
  // CHECK: %[[C:.*]] = nd.reduce sum
  // CHECK-NEXT: %[[RC:.*]] = nd.reshard %[[C]]
  %y = arith.negf %x : tensor<4x8xf32>
  %3 = nd.reduce sum %y dims = [0] : tensor<4x8xf32> -> tensor<8xf32>
  // CHECK: arith.mulf %[[RC]], %{{.*}} : tensor<8xf32, #nd.sharding<@mesh, [{}]>>
  %4 = arith.mulf %3, %v : tensor<8xf32>
  return %2, %4 : tensor<8xf32>, tensor<8xf32>
}

// -----

nd.mesh @mesh axes [#nd.axis<"dp" = 2, replicate>]

// Reduced before it is repeated, since that is less to move; a maximum at once.
// CHECK-LABEL: func.func @smaller_first
func.func @smaller_first(%x: tensor<4x8xf32> {nd.sharding = #nd.sharding<@mesh, [{"dp"}, {}]>})
    -> (tensor<16x8xf32> {nd.sharding = #nd.sharding<@mesh, [{}, {}]>}, tensor<8xf32> {nd.sharding = #nd.sharding<@mesh, [{}]>}) {
  // CHECK: %[[A:.*]] = nd.reduce sum
  // CHECK-NEXT: %[[R:.*]] = nd.reshard %[[A]]
  // CHECK-NEXT: nd.broadcast %[[R]]
  %0 = nd.reduce sum %x dims = [0] : tensor<4x8xf32> -> tensor<8xf32>
  %1 = nd.broadcast %0 dims = [1] : tensor<8xf32> -> tensor<16x8xf32>
  // CHECK: %[[M:.*]] = nd.reduce max {{.*}} -> tensor<8xf32, #nd.sharding<@mesh, [{}], unreduced = max {"dp"}>>
  // CHECK-NEXT: nd.reshard %[[M]]
  %2 = nd.reduce max %x dims = [0] : tensor<4x8xf32> -> tensor<8xf32>
  %3 = arith.negf %2 : tensor<8xf32>
  return %1, %3 : tensor<16x8xf32>, tensor<8xf32>
}

// -----

nd.mesh @mesh axes [#nd.axis<"dp" = 2, replicate>]

// An operation that needs the whole dimension gets it gathered, once for both uses.
// CHECK-LABEL: func.func @gather
func.func @gather(%x: tensor<4x8xf32> {nd.kind = "input", nd.name = "x", nd.sharding = #nd.sharding<@mesh, [{"dp"}, {}]>}) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  // CHECK: %[[G:.*]] = nd.reshard %{{.*}} name = "input 'x'" reason = "'nd.cumsum' needs it sharded otherwise"
  // CHECK: nd.cumsum %[[G]]
  // CHECK: nd.softmax %[[G]]
  // CHECK-NOT: nd.reshard
  %0 = nd.cumsum %x dim = 0 : tensor<4x8xf32>
  %1 = nd.softmax %x dim = 0 : tensor<4x8xf32>
  return %0, %1 : tensor<4x8xf32>, tensor<4x8xf32>
}

// -----

nd.mesh @mesh axes [#nd.axis<"dp" = 2, replicate>]

// An initial value that is whole cannot be added to partial sums by every rank, one that is partial itself can.
// CHECK-LABEL: func.func @scatter_init
func.func @scatter_init(%i: tensor<4xi64> {nd.sharding = #nd.sharding<@mesh, [{"dp"}]>},
                        %u: tensor<4x8xf32> {nd.sharding = #nd.sharding<@mesh, [{"dp"}, {}]>},
                        %w: tensor<8x8xf32> {nd.sharding = #nd.sharding<@mesh, [{}, {}]>})
    -> (tensor<8x8xf32> {nd.sharding = #nd.sharding<@mesh, [{}, {}]>}, tensor<8x8xf32> {nd.sharding = #nd.sharding<@mesh, [{}, {}]>}) {
  // CHECK: %[[I:.*]] = nd.reshard
  // CHECK: %[[U:.*]] = nd.reshard
  // CHECK: nd.scatter_add %[[I]], %[[U]] init %{{.*}} -> tensor<8x8xf32, #nd.sharding<@mesh, [{}, {}]>>
  %0 = nd.scatter_add %i, %u init %w : tensor<8x8xf32> : tensor<4xi64>, tensor<4x8xf32> -> tensor<8x8xf32>
  // CHECK: %[[G:.*]] = nd.dot_general
  %1 = nd.dot_general %u, %u contract = [0] x [0] : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<8x8xf32>
  // CHECK: %[[S:.*]] = nd.scatter_add %{{.*}}, %{{.*}} init %[[G]] : {{.*}} -> tensor<8x8xf32, #nd.sharding<@mesh, [{}, {}], unreduced = sum {"dp"}>>
  // CHECK: %[[R:.*]] = nd.reshard %[[S]]
  %2 = nd.scatter_add %i, %u init %1 : tensor<8x8xf32> : tensor<4xi64>, tensor<4x8xf32> -> tensor<8x8xf32>
  return %0, %2 : tensor<8x8xf32>, tensor<8x8xf32>
}

// -----

nd.mesh @mesh axes [#nd.axis<"dp" = 2, replicate>]

// What moves is narrow: the gather comes before the widening, while who needs no gather widens what it has.
// CHECK-LABEL: func.func @widened
func.func @widened(%x: tensor<4x8xbf16> {nd.sharding = #nd.sharding<@mesh, [{"dp"}, {}]>})
    -> (tensor<4x8xf32> {nd.sharding = #nd.sharding<@mesh, [{}, {}]>}, tensor<4x8xf32> {nd.sharding = #nd.sharding<@mesh, [{"dp"}, {}]>}) {
  // CHECK: %[[W:.*]] = arith.extf %arg0
  // CHECK: %[[N:.*]] = arith.negf %[[W]]
  // CHECK: %[[G:.*]] = nd.reshard %arg0 {{.*}} -> tensor<4x8xbf16, #nd.sharding<@mesh, [{}, {}]>>
  // CHECK: %[[GW:.*]] = arith.extf %[[G]]
  // CHECK: return %[[GW]], %[[N]]
  %0 = arith.extf %x : tensor<4x8xbf16> to tensor<4x8xf32>
  %1 = arith.negf %0 : tensor<4x8xf32>
  return %0, %1 : tensor<4x8xf32>, tensor<4x8xf32>
}

// -----

// Backward rounds a block's weight again, for the gather of its own; forward's form is not kept until then. The head's is gathered once.
module attributes {nd.model = {blocks = ["h.0"]}} {
nd.mesh @mesh axes [#nd.axis<"fsdp" = 2, shard>]
// CHECK-LABEL: func.func @again
func.func @again(%x: tensor<4x4xbf16> {nd.kind = "input", nd.sharding = #nd.sharding<@mesh, [{"fsdp"}, {}]>},
                 %w: tensor<4x4xf32> {nd.kind = "weight", nd.name = "h.0.w", nd.sharding = #nd.sharding<@mesh, [{"fsdp"}, {}]>, nd.use_sharding = #nd.sharding<@mesh, [{}, {}]>},
                 %v: tensor<4x4xf32> {nd.kind = "weight", nd.name = "v", nd.sharding = #nd.sharding<@mesh, [{"fsdp"}, {}]>, nd.use_sharding = #nd.sharding<@mesh, [{}, {}]>})
    -> (tensor<4x4xbf16> {nd.kind = "metric", nd.name = "loss", nd.sharding = #nd.sharding<@mesh, [{"fsdp"}, {}]>},
        tensor<4x4xbf16> {nd.kind = "output", nd.name = "d", nd.sharding = #nd.sharding<@mesh, [{"fsdp"}, {}]>}) {
  // CHECK: %[[AGAIN:.*]] = arith.truncf %arg1 {nd.recomputed}
  // CHECK: %[[W:.*]] = arith.truncf %arg1 :
  // CHECK: %[[V:.*]] = arith.truncf %arg2 :
  // CHECK: nd.reshard %[[W]] {{.*}} {nd.unit = "h.0"}
  // CHECK: nd.reshard %[[V]] {{.*}} {nd.unit = "head"}
  // CHECK-NOT: nd.reshard %[[V]]
  // CHECK: nd.reshard %[[AGAIN]] {{.*}} {nd.unit = "h.0, again"}
  %0 = arith.truncf %w : tensor<4x4xf32> to tensor<4x4xbf16>
  %1 = arith.truncf %v : tensor<4x4xf32> to tensor<4x4xbf16>
  %2 = nd.dot_general %x, %0 contract = [1] x [0] : tensor<4x4xbf16>, tensor<4x4xbf16> -> tensor<4x4xbf16>
  %3 = nd.dot_general %2, %1 contract = [1] x [0] : tensor<4x4xbf16>, tensor<4x4xbf16> -> tensor<4x4xbf16>
  %4 = nd.dot_general %3, %1 contract = [1] x [1] : tensor<4x4xbf16>, tensor<4x4xbf16> -> tensor<4x4xbf16>
  %5 = nd.dot_general %4, %0 contract = [1] x [1] : tensor<4x4xbf16>, tensor<4x4xbf16> -> tensor<4x4xbf16>
  return %3, %5 : tensor<4x4xbf16>, tensor<4x4xbf16>
}
}

// -----

nd.mesh @mesh axes [#nd.axis<"dp" = 2, replicate>, #nd.axis<"tp" = 2, tensor>]

// Two terms that are partial over dp, one of them over tp too: the other becomes a part of a sum over tp, and all is reduced once.
// CHECK-LABEL: func.func @over_more_axes
func.func @over_more_axes(%x: tensor<4x6x8xf32> {nd.sharding = #nd.sharding<@mesh, [{"dp"}, {"tp"}, {}]>},
                          %d: tensor<4x8xf32> {nd.sharding = #nd.sharding<@mesh, [{"dp"}, {}]>}) -> tensor<8x8xf32> {
  // CHECK: %[[A:.*]] = nd.dot_general {{.*}}unreduced = sum {"dp", "tp"}>>
  %0 = nd.dot_general %x, %x contract = [0, 1] x [0, 1] : tensor<4x6x8xf32>, tensor<4x6x8xf32> -> tensor<8x8xf32>
  // CHECK-NEXT: %[[B:.*]] = nd.dot_general {{.*}}unreduced = sum {"dp"}>>
  // CHECK-NEXT: %[[P:.*]] = nd.as_partial %[[B]] over ["tp"] parts = 2
  %1 = nd.dot_general %d, %d contract = [0] x [0] : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<8x8xf32>
  // CHECK-NEXT: %[[SUM:.*]] = arith.addf %[[A]], %[[P]] : {{.*}}unreduced = sum {"dp", "tp"}>>
  // CHECK-NEXT: %[[R:.*]] = nd.reshard %[[SUM]]
  // CHECK-NEXT: return %[[R]]
  %2 = arith.addf %0, %1 : tensor<8x8xf32>
  return %2 : tensor<8x8xf32>
}
