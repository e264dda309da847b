// RUN: nd-opt %s --shard=cp2 --cp=ring --microbatches=2 --optimizer=sgd --clip=0 | FileCheck %s --check-prefix=SEQUENCE
// RUN: nd-opt %s --shard=fsdp3 --zero=1 --keep-gradients --optimizer=sgd --clip=0 | FileCheck %s --check-prefix=STORAGE

// Three tokens are padded to four, and stored in zig-zag, where nothing could be set to zero afterwards: labels of padding
// are ignored in every microbatch, and so nothing has to be.
// SEQUENCE: tensor<2x3x2xi64> {{.*}}nd.chunks = {dim = 2 : i64, order = array<i64: 0, 3, 1, 2>, size = 1 : i64}{{.*}}nd.name = "labels", nd.pad_value = -100
// SEQUENCE-NOT: arith.select

// A weight that is stored whole has a gradient whose shards are padded.
// STORAGE: tensor<3x8xf32> {nd.blocks = {{\[\[}}3], []], nd.global_shape = array<i64: 8, 8>, nd.kind = "gradient"
module attributes {nd.model = {batch = 3 : i64, seq = 3 : i64, ignore_index = -100 : i64, vocab_size = 8 : i64}} {
  func.func @forward(%ids: tensor<3x3xi64> {nd.kind = "input", nd.name = "input_ids", nd.bound = 8 : i64},
                     %w: tensor<8x8xf32> {nd.kind = "weight", nd.name = "w"}) -> (tensor<3x3x8xf32> {nd.kind = "logits", nd.name = "logits"}) {
    %x = nd.take %w[%ids] : tensor<8x8xf32>, tensor<3x3xi64> -> tensor<3x3x8xf32>
    %q = nd.reshape %x : tensor<3x3x8xf32> -> tensor<3x1x3x8xf32>
    %y, %lse = nd.attention %q, %q, %q scale = 1.0 causal : tensor<3x1x3x8xf32>, tensor<3x1x3x8xf32>, tensor<3x1x3x8xf32> -> tensor<3x1x3x8xf32>, tensor<3x1x3xf32>
    %logits = nd.reshape %y : tensor<3x1x3x8xf32> -> tensor<3x3x8xf32>
    return %logits : tensor<3x3x8xf32>
  }
}
