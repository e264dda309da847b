// RUN: nd-opt %s --shard=tp3 --optimizer=sgd --clip=0 | FileCheck %s
// RUN: nd-opt %s --shard=fsdp2,tp3 --optimizer=sgd --clip=0 --microbatches=2 -o /dev/null

// Six query heads on two of keys, over three ranks. Each key head is scaled by a weight of its own (the norms of Cohere): one
// element of a head there, and two in a projection, are copies by one table.
// CHECK: nd.copies = {dim = 0 : i64, table = {{\[\[}}0, -1], [0, 1], [-1, 1]], unit = 1 : i64}{{.*}}nd.name = "norm"
module attributes {nd.model = {batch = 4 : i64, seq = 2 : i64, ignore_index = -100 : i64, vocab_size = 4 : i64}} {
  func.func @forward(%ids: tensor<4x2xi64> {nd.kind = "input", nd.name = "input_ids", nd.bound = 4 : i64},
                     %w: tensor<4x4xf32> {nd.kind = "weight", nd.name = "w"},
                     %wq: tensor<12x4xf32> {nd.kind = "weight", nd.name = "wq"},
                     %wk: tensor<4x4xf32> {nd.kind = "weight", nd.name = "wk"},
                     %wv: tensor<4x4xf32> {nd.kind = "weight", nd.name = "wv"},
                     %norm: tensor<2x2xf32> {nd.kind = "weight", nd.name = "norm"},
                     %wo: tensor<4x12xf32> {nd.kind = "weight", nd.name = "wo"}) -> (tensor<4x2x4xf32> {nd.kind = "logits", nd.name = "logits"}) {
    %x = nd.take %w[%ids] : tensor<4x4xf32>, tensor<4x2xi64> -> tensor<4x2x4xf32>
    %q0 = nd.dot_general %x, %wq contract = [2] x [1] : tensor<4x2x4xf32>, tensor<12x4xf32> -> tensor<4x2x12xf32>
    %k0 = nd.dot_general %x, %wk contract = [2] x [1] : tensor<4x2x4xf32>, tensor<4x4xf32> -> tensor<4x2x4xf32>
    %v0 = nd.dot_general %x, %wv contract = [2] x [1] : tensor<4x2x4xf32>, tensor<4x4xf32> -> tensor<4x2x4xf32>
    %q1 = nd.reshape %q0 : tensor<4x2x12xf32> -> tensor<4x2x6x2xf32>
    %k1 = nd.reshape %k0 : tensor<4x2x4xf32> -> tensor<4x2x2x2xf32>
    %n1 = nd.broadcast %norm dims = [2, 3] : tensor<2x2xf32> -> tensor<4x2x2x2xf32>
    %k2 = arith.mulf %k1, %n1 : tensor<4x2x2x2xf32>
    %q = nd.transpose %q1 permutation = [0, 2, 1, 3] : tensor<4x2x6x2xf32> -> tensor<4x6x2x2xf32>
    %k = nd.transpose %k2 permutation = [0, 2, 1, 3] : tensor<4x2x2x2xf32> -> tensor<4x2x2x2xf32>
    %v1 = nd.reshape %v0 : tensor<4x2x4xf32> -> tensor<4x2x2x2xf32>
    %v = nd.transpose %v1 permutation = [0, 2, 1, 3] : tensor<4x2x2x2xf32> -> tensor<4x2x2x2xf32>
    %y0, %lse = nd.attention %q, %k, %v scale = 1.0 causal : tensor<4x6x2x2xf32>, tensor<4x2x2x2xf32>, tensor<4x2x2x2xf32> -> tensor<4x6x2x2xf32>, tensor<4x6x2xf32>
    %y1 = nd.transpose %y0 permutation = [0, 2, 1, 3] : tensor<4x6x2x2xf32> -> tensor<4x2x6x2xf32>
    %y = nd.reshape %y1 : tensor<4x2x6x2xf32> -> tensor<4x2x12xf32>
    %o = nd.dot_general %y, %wo contract = [2] x [1] : tensor<4x2x12xf32>, tensor<4x12xf32> -> tensor<4x2x4xf32>
    %z = arith.addf %x, %o : tensor<4x2x4xf32>
    %logits = nd.dot_general %z, %w contract = [2] x [1] : tensor<4x2x4xf32>, tensor<4x4xf32> -> tensor<4x2x4xf32>
    return %logits : tensor<4x2x4xf32>
  }
}
