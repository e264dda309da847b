// RUN: nd-opt %s --shard=fsdp3 --keep-gradients --optimizer=sgd --clip=1 | FileCheck %s
// RUN: nd-opt %s --shard=fsdp3 --keep-gradients --optimizer=sgd --clip=1 --microbatches=2 | FileCheck %s
// RUN: nd-opt %s --shard=fsdp3 --keep-gradients --optimizer=sgd --clip=1 --annotate='b=[_]' | FileCheck %s --check-prefix=ANNOTATED

// Two biases of one sum, as of attention and MLP side by side, have one gradient. Each is stored in three shards of 2 of 4,
// and the gradient is padded once for both. A bias that the user keeps whole is updated with the gradient as it is.
// CHECK-DAG: tensor<2xf32> {nd.blocks = {{\[\[}}2]], nd.global_shape = array<i64: 4>, nd.kind = "gradient", nd.name = "a"
// CHECK-DAG: tensor<2xf32> {nd.blocks = {{\[\[}}2]], nd.global_shape = array<i64: 4>, nd.kind = "gradient", nd.name = "b"
// ANNOTATED-DAG: tensor<2xf32> {nd.blocks = {{\[\[}}2]], nd.global_shape = array<i64: 4>, nd.kind = "gradient", nd.name = "a"
// ANNOTATED-DAG: tensor<4xf32> {nd.global_shape = array<i64: 4>, nd.kind = "gradient", nd.name = "b"
module attributes {nd.model = {batch = 6 : i64, seq = 2 : i64, ignore_index = -100 : i64, vocab_size = 4 : i64}} {
  func.func @forward(%ids: tensor<6x2xi64> {nd.kind = "input", nd.name = "input_ids", nd.bound = 6 : i64},
                     %w: tensor<6x4xf32> {nd.kind = "weight", nd.name = "w"},
                     %a: tensor<4xf32> {nd.kind = "weight", nd.name = "a"},
                     %b: tensor<4xf32> {nd.kind = "weight", nd.name = "b"}) -> (tensor<6x2x4xf32> {nd.kind = "logits", nd.name = "logits"}) {
    %x = nd.take %w[%ids] : tensor<6x4xf32>, tensor<6x2xi64> -> tensor<6x2x4xf32>
    %ab = nd.broadcast %a dims = [2] : tensor<4xf32> -> tensor<6x2x4xf32>
    %bb = nd.broadcast %b dims = [2] : tensor<4xf32> -> tensor<6x2x4xf32>
    %y = arith.addf %x, %ab : tensor<6x2x4xf32>
    %logits = arith.addf %y, %bb : tensor<6x2x4xf32>
    return %logits : tensor<6x2x4xf32>
  }
}
