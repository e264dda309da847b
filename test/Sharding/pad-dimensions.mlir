// RUN: nd-opt %s -split-input-file -nd-annotate=shard=tp2 | FileCheck %s
// RUN: nd-opt %s -split-input-file -nd-annotate="shard=tp2 sequence-parallel=false" | FileCheck %s --check-prefix=WHOLE

// The sequence of 3 is padded to 4. Scores of queries and keys have it twice: where the queries' gradient is zero, theirs is
// zero behind the queries, but not behind the keys, so that a sum over the keys needs a mask.
// CHECK-LABEL: func.func @step
// CHECK: %[[SCORES:.*]] = nd.dot_general %{{.*}}, %{{.*}} batch = [0] x [0] contract = [2] x [2]
// CHECK: nd.iota dim = 2 : tensor<2x4x4xi64>
// CHECK: %[[MASKED:.*]] = arith.select %{{.*}}, %[[SCORES]], %{{.*}} : tensor<2x4x4xi1>, tensor<2x4x4xf32>
// CHECK: nd.dot_general %[[MASKED]], %{{.*}} batch = [0] x [0] contract = [2] x [1]
// A sum over the queries needs none.
// CHECK: nd.dot_general %[[SCORES]], %{{.*}} batch = [0] x [0] contract = [1] x [1]
// WHOLE-LABEL: func.func @step
// WHOLE-NOT: tensor<2x4x4
module attributes {nd.model = {batch = 2 : i64, seq = 3 : i64}} {
  func.func @step(%ids: tensor<2x3xi64> {nd.kind = "input", nd.name = "input_ids"},
                  %table: tensor<8x8xf32> {nd.kind = "weight", nd.name = "table"})
      -> (tensor<2x3x8xf32> {nd.kind = "output", nd.name = "a"}, tensor<2x3x8xf32> {nd.kind = "output", nd.name = "b"}) {
    %c = arith.constant dense<1> : tensor<2x3xi64>
    %next = arith.addi %ids, %c : tensor<2x3xi64>
    %keys = nd.take %table[%next] : tensor<8x8xf32>, tensor<2x3xi64> -> tensor<2x3x8xf32>
    %number = arith.sitofp %ids : tensor<2x3xi64> to tensor<2x3xf32>
    %queries = nd.broadcast %number dims = [0, 1] : tensor<2x3xf32> -> tensor<2x3x8xf32>
    %scores = nd.dot_general %queries, %keys batch = [0] x [0] contract = [2] x [2] : tensor<2x3x8xf32>, tensor<2x3x8xf32> -> tensor<2x3x3xf32>
    %a = nd.dot_general %scores, %keys batch = [0] x [0] contract = [2] x [1] : tensor<2x3x3xf32>, tensor<2x3x8xf32> -> tensor<2x3x8xf32>
    %b = nd.dot_general %scores, %keys batch = [0] x [0] contract = [1] x [1] : tensor<2x3x3xf32>, tensor<2x3x8xf32> -> tensor<2x3x8xf32>
    return %a, %b : tensor<2x3x8xf32>, tensor<2x3x8xf32>
  }
}

// -----

// An operation that needs the whole sequence gets it without padding; its result is padded again. So does a constant whose
// elements differ.
// CHECK-LABEL: func.func @whole
// CHECK: %[[C:.*]] = arith.constant dense<{{.*}}> : tensor<3x3xf32>
// CHECK: nd.pad %[[C]], %{{.*}} low = [0, 0] high = [1, 1] {{.*}} -> tensor<4x4xf32>
// CHECK: %[[SLICE:.*]] = nd.slice %{{.*}} : tensor<2x4x4xf32> -> tensor<2x4x3xf32>
// CHECK: %[[SOFTMAX:.*]] = nd.softmax %[[SLICE]] dim = 2 : tensor<2x4x3xf32>
// CHECK: %[[PAD:.*]] = nd.pad %[[SOFTMAX]], %{{.*}} low = [0, 0, 0] high = [0, 0, 1] {{.*}} -> tensor<2x4x4xf32>
// CHECK: arith.mulf %[[PAD]], %{{.*}} : tensor<2x4x4xf32>
module attributes {nd.model = {batch = 2 : i64, seq = 3 : i64}} {
  func.func @whole(%ids: tensor<2x3xi64> {nd.kind = "input", nd.name = "input_ids"}) -> (tensor<2x3x3xf32> {nd.kind = "output", nd.name = "p"}) {
    %mask = arith.constant dense<[[0.0, -1.0, -2.0], [1.0, 0.0, -1.0], [2.0, 1.0, 0.0]]> : tensor<3x3xf32>
    %number = arith.sitofp %ids : tensor<2x3xi64> to tensor<2x3xf32>
    %row = nd.broadcast %number dims = [0, 1] : tensor<2x3xf32> -> tensor<2x3x3xf32>
    %column = nd.broadcast %number dims = [0, 2] : tensor<2x3xf32> -> tensor<2x3x3xf32>
    %product = arith.mulf %row, %column : tensor<2x3x3xf32>
    %wide = nd.broadcast %mask dims = [1, 2] : tensor<3x3xf32> -> tensor<2x3x3xf32>
    %sum = arith.addf %product, %wide : tensor<2x3x3xf32>
    %p = nd.softmax %sum dim = 2 : tensor<2x3x3xf32>
    %q = arith.mulf %p, %row : tensor<2x3x3xf32>
    return %q : tensor<2x3x3xf32>
  }
}

// -----

// Heads of zeros have no direction: what is computed from them is not finite, and zero times it is not zero.
// CHECK-LABEL: func.func @wild
// CHECK: %[[WILD:.*]] = arith.divf
// CHECK: %[[MASKED:.*]] = arith.select %{{.*}}, %[[WILD]], %{{.*}} : tensor<6x4xi1>, tensor<6x4xf32>
// CHECK: nd.dot_general %[[MASKED]], %{{.*}} contract = [1] x [0]
module attributes {nd.model = {batch = 6 : i64}} {
  func.func @wild(%x: tensor<6x8xf32> {nd.kind = "input", nd.name = "x"}, %up: tensor<8x3xf32> {nd.kind = "weight", nd.name = "up"},
                  %down: tensor<3x8xf32> {nd.kind = "weight", nd.name = "down"}) -> (tensor<6x8xf32> {nd.kind = "output", nd.name = "y"}) {
    %h = nd.dot_general %x, %up contract = [1] x [0] : tensor<6x8xf32>, tensor<8x3xf32> -> tensor<6x3xf32>
    %length = math.absf %h : tensor<6x3xf32>
    %direction = arith.divf %h, %length : tensor<6x3xf32>
    %y = nd.dot_general %direction, %down contract = [1] x [0] : tensor<6x3xf32>, tensor<3x8xf32> -> tensor<6x8xf32>
    return %y : tensor<6x8xf32>
  }
}

// -----

// A dimension that is the sequence twice: a constant of distances has no padding in either, what is taken by it is padded
// in both, and a sum over it, as of the table's gradient, leaves both out.
// CHECK-LABEL: func.func @twice
// CHECK: %[[C:.*]] = arith.constant dense<[2, 1, 0, 3, 2, 1, 4, 3, 2]> : tensor<9xi64>
// CHECK: %[[SPLIT:.*]] = nd.reshape %[[C]] : tensor<9xi64> -> tensor<3x3xi64>
// CHECK: %[[PAD:.*]] = nd.pad %[[SPLIT]], %{{.*}} low = [0, 0] high = [1, 1] {{.*}} -> tensor<4x4xi64>
// CHECK: %[[INDICES:.*]] = nd.reshape %[[PAD]] : tensor<4x4xi64> -> tensor<16xi64>
// CHECK: nd.take %{{.*}}[%[[INDICES]]]
// CHECK: %[[BOTH:.*]] = arith.andi {{.*}} : tensor<4x4xi1>
// CHECK: %[[REAL:.*]] = nd.reshape %[[BOTH]] : tensor<4x4xi1> -> tensor<16xi1>
// CHECK: %[[MASKED:.*]] = arith.select %[[REAL]], {{.*}} : tensor<16xi1>, tensor<16xf32>
// CHECK: nd.reduce sum %[[MASKED]] dims = [0]
module attributes {nd.model = {batch = 2 : i64, seq = 3 : i64}} {
  func.func @twice(%ids: tensor<2x3xi64> {nd.kind = "input", nd.name = "input_ids"}, %table: tensor<5xf32> {nd.kind = "weight", nd.name = "t"})
      -> (tensor<2x3x3xf32> {nd.kind = "output", nd.name = "p"}, tensor<f32> {nd.kind = "output", nd.name = "s"}) {
    %distance = arith.constant dense<[2, 1, 0, 3, 2, 1, 4, 3, 2]> : tensor<9xi64>
    %number = arith.sitofp %ids : tensor<2x3xi64> to tensor<2x3xf32>
    %row = nd.broadcast %number dims = [0, 1] : tensor<2x3xf32> -> tensor<2x3x3xf32>
    %column = nd.broadcast %number dims = [0, 2] : tensor<2x3xf32> -> tensor<2x3x3xf32>
    %product = arith.mulf %row, %column : tensor<2x3x3xf32>
    %taken = nd.take %table[%distance] : tensor<5xf32>, tensor<9xi64> -> tensor<9xf32>
    %sum = nd.reduce sum %taken dims = [0] : tensor<9xf32> -> tensor<f32>
    %bias = nd.reshape %taken : tensor<9xf32> -> tensor<3x3xf32>
    %wide = nd.broadcast %bias dims = [1, 2] : tensor<3x3xf32> -> tensor<2x3x3xf32>
    %p = arith.addf %product, %wide : tensor<2x3x3xf32>
    return %p, %sum : tensor<2x3x3xf32>, tensor<f32>
  }
}
