// RUN: nd-opt %s -nd-propagate-sharding -nd-insert-reshards -nd-verify-sharding -split-input-file | FileCheck %s

nd.mesh @mesh axes [#nd.axis<"tp" = 2, tensor>]

// Two partial products and what is whole, in any order and nesting: the products are added first and reduced once.
// CHECK-LABEL: func.func @parallel
// CHECK-SAME: %[[X:[^:]*]]: tensor<4x8xf32
func.func @parallel(%x: tensor<4x8xf32> {nd.sharding = #nd.sharding<@mesh, [{}, {}]>},
                    %a: tensor<4x6xf32> {nd.sharding = #nd.sharding<@mesh, [{}, {"tp"}]>},
                    %w: tensor<6x8xf32> {nd.sharding = #nd.sharding<@mesh, [{"tp"}, {}]>},
                    %b: tensor<8xf32> {nd.sharding = #nd.sharding<@mesh, [{}]>}) -> tensor<4x8xf32> {
  // CHECK: %[[P:.*]] = nd.dot_general {{.*}}unreduced = sum {"tp"}
  %0 = nd.dot_general %a, %w contract = [1] x [0] : tensor<4x6xf32>, tensor<6x8xf32> -> tensor<4x8xf32>
  // CHECK: %[[B:.*]] = nd.broadcast
  %1 = nd.broadcast %b dims = [1] : tensor<8xf32> -> tensor<4x8xf32>
  %2 = arith.addf %0, %1 : tensor<4x8xf32>
  // CHECK: %[[E:.*]] = math.exp
  %3 = math.exp %a : tensor<4x6xf32>
  // CHECK: %[[Q:.*]] = nd.dot_general %[[E]], {{.*}}unreduced = sum {"tp"}
  %4 = nd.dot_general %3, %w contract = [1] x [0] : tensor<4x6xf32>, tensor<6x8xf32> -> tensor<4x8xf32>
  %5 = arith.addf %x, %4 : tensor<4x8xf32>
  // CHECK-NEXT: %[[SUM:.*]] = arith.addf %[[P]], %[[Q]] : {{.*}}unreduced = sum {"tp"}
  // CHECK-NEXT: %[[R:.*]] = nd.reshard %[[SUM]]
  // CHECK-NEXT: %[[RB:.*]] = arith.addf %[[R]], %[[B]]
  // CHECK-NEXT: %[[RX:.*]] = arith.addf %[[RB]], %[[X]]
  // CHECK-NEXT: return %[[RX]]
  %6 = arith.addf %2, %5 : tensor<4x8xf32>
  return %6 : tensor<4x8xf32>
}

// -----

nd.mesh @mesh axes [#nd.axis<"tp" = 2, tensor>]

// Narrow products are added and reduced narrow; the bias' sum is rounded no more on its way to the other.
// CHECK-LABEL: func.func @narrow
// CHECK-SAME: %[[X:[^:]*]]: tensor<4x8xf32
func.func @narrow(%x: tensor<4x8xf32> {nd.sharding = #nd.sharding<@mesh, [{}, {}]>},
                  %a: tensor<4x6xbf16> {nd.sharding = #nd.sharding<@mesh, [{}, {"tp"}]>},
                  %w: tensor<6x8xbf16> {nd.sharding = #nd.sharding<@mesh, [{"tp"}, {}]>},
                  %b: tensor<8xf32> {nd.sharding = #nd.sharding<@mesh, [{}]>}) -> tensor<4x8xf32> {
  // CHECK: %[[P:.*]] = nd.dot_general
  %0 = nd.dot_general %a, %w contract = [1] x [0] : tensor<4x6xbf16>, tensor<6x8xbf16> -> tensor<4x8xbf16>
  %1 = arith.extf %0 : tensor<4x8xbf16> to tensor<4x8xf32>
  // CHECK: %[[B:.*]] = nd.broadcast
  %2 = nd.broadcast %b dims = [1] : tensor<8xf32> -> tensor<4x8xf32>
  %3 = arith.addf %1, %2 : tensor<4x8xf32>
  %4 = arith.truncf %3 : tensor<4x8xf32> to tensor<4x8xbf16>
  %5 = arith.extf %4 : tensor<4x8xbf16> to tensor<4x8xf32>
  %6 = arith.addf %5, %x : tensor<4x8xf32>
  // CHECK: %[[Q:.*]] = nd.dot_general
  %7 = nd.dot_general %w, %a contract = [0] x [1] : tensor<6x8xbf16>, tensor<4x6xbf16> -> tensor<8x4xbf16>
  // CHECK: %[[T:.*]] = nd.transpose %[[Q]]
  %8 = nd.transpose %7 permutation = [1, 0] : tensor<8x4xbf16> -> tensor<4x8xbf16>
  %9 = arith.extf %8 : tensor<4x8xbf16> to tensor<4x8xf32>
  // CHECK-NEXT: %[[SUM:.*]] = arith.addf %[[P]], %[[T]] : tensor<4x8xbf16, {{.*}}unreduced = sum {"tp"}
  // CHECK-NEXT: %[[R:.*]] = nd.reshard %[[SUM]]
  // CHECK-NEXT: %[[W:.*]] = arith.extf %[[R]]
  // CHECK-NEXT: %[[WB:.*]] = arith.addf %[[W]], %[[B]]
  // CHECK-NEXT: %[[WX:.*]] = arith.addf %[[WB]], %[[X]]
  // CHECK-NEXT: return %[[WX]]
  %10 = arith.addf %6, %9 : tensor<4x8xf32>
  return %10 : tensor<4x8xf32>
}

// -----

nd.mesh @mesh axes [#nd.axis<"dp" = 2, replicate>, #nd.axis<"tp" = 2, tensor>]

// What something else reads has to be whole in any case (%0), and sums over other axes are other sums (%4): nothing is regrouped.
// CHECK-LABEL: func.func @apart
func.func @apart(%x: tensor<8x8xf32> {nd.sharding = #nd.sharding<@mesh, [{}, {}]>},
                 %a: tensor<8x6xf32> {nd.sharding = #nd.sharding<@mesh, [{}, {"tp"}]>},
                 %w: tensor<6x8xf32> {nd.sharding = #nd.sharding<@mesh, [{"tp"}, {}]>},
                 %d: tensor<4x8xf32> {nd.sharding = #nd.sharding<@mesh, [{"dp"}, {}]>})
    -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  // CHECK: %[[P:.*]] = nd.dot_general
  // CHECK-NEXT: %[[RP:.*]] = nd.reshard %[[P]]
  %0 = nd.dot_general %a, %w contract = [1] x [0] : tensor<8x6xf32>, tensor<6x8xf32> -> tensor<8x8xf32>
  // CHECK-NEXT: %[[S:.*]] = arith.addf %{{.*}}, %[[RP]]
  %1 = arith.addf %x, %0 : tensor<8x8xf32>
  // CHECK-NEXT: %[[Q:.*]] = nd.dot_general
  // CHECK-NEXT: %[[RQ:.*]] = nd.reshard %[[Q]]
  %2 = nd.dot_general %w, %a contract = [0] x [1] : tensor<6x8xf32>, tensor<8x6xf32> -> tensor<8x8xf32>
  // CHECK-NEXT: %[[T:.*]] = arith.addf %[[S]], %[[RQ]]
  %3 = arith.addf %1, %2 : tensor<8x8xf32>
  // CHECK-NEXT: %[[D:.*]] = nd.dot_general
  // CHECK-NEXT: %[[RD:.*]] = nd.reshard %[[D]]
  %4 = nd.dot_general %d, %d contract = [0] x [0] : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<8x8xf32>
  // CHECK-NEXT: arith.addf %[[T]], %[[RD]]
  %5 = arith.addf %3, %4 : tensor<8x8xf32>
  return %5, %0 : tensor<8x8xf32>, tensor<8x8xf32>
}
