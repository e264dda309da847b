// RUN: nd-opt %s --shard=fsdp2 --optimizer=sgd --clip=0 | grep -o 'nd.unit = "[^"]*"' | FileCheck %s --check-prefix=BLOCK
// RUN: nd-opt %s --shard=fsdp2 --optimizer=sgd --clip=0 --fsdp-unit=whole | grep -o 'nd.unit = "[^"]*"' | FileCheck %s --check-prefix=WHOLE
// RUN: nd-opt %s --shard=fsdp2 --optimizer=sgd --clip=0 '--fsdp-unit=*.mlp*' | grep -o 'nd.unit = "[^"]*"' | FileCheck %s --check-prefix=MLP
// RUN: nd-opt %s --shard=fsdp2 --optimizer=sgd --clip=0 '--fsdp-unit={layers,head.?}' | grep -o 'nd.unit = "[^"]*"' | FileCheck %s --check-prefix=OUTER
// RUN: not nd-opt %s --shard=fsdp2 '--fsdp-unit=*.mlq' 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not nd-opt %s --shard=fsdp2 '--fsdp-unit=layer.*' 2>&1 | FileCheck %s --check-prefix=NEAR

// Units by default: what comes before the blocks, each block, what comes behind the last. The last is gathered once.
// BLOCK: "embedding"
// BLOCK: "layers.0"
// BLOCK: "layers.1"
// BLOCK: "head"
// BLOCK: "layers.1, again"
// BLOCK: "layers.0, again"
// BLOCK-NOT: again

// WHOLE: "model"
// WHOLE-NOT: "

// Modules that match are units of their own, the outermost where one is inside another. The rest of a block is one too.
// MLP: "embedding"
// MLP: "layers.0"
// MLP: "layers.0.mlp"
// MLP: "layers.1"
// MLP: "layers.1.mlp"
// MLP: "head"
// MLP: "layers.1.mlp, again"
// MLP: "layers.1, again"
// MLP: "layers.0.mlp, again"
// MLP: "layers.0, again"
// MLP-NOT: again

// OUTER: "embedding"
// OUTER: "layers"
// OUTER: "head.w"
// OUTER: "layers, again"
// OUTER-NOT: again

// NONE: --fsdp-unit=*.mlq: no module of the model has such a path, and no parameter such a name; some spelled alike are 'layers.0.mlp', 'layers.1.mlp', {{.*}}; or write block, or whole
// NEAR: some spelled alike are 'layers'
module attributes {nd.model = {batch = 4 : i64, blocks = ["layers.0", "layers.1"]}} {
  func.func @forward(%x: tensor<4x8xf32> {nd.kind = "input", nd.name = "x"}, %in: tensor<8x8xf32> {nd.kind = "weight", nd.name = "in.w"},
                     %a0: tensor<8x8xf32> {nd.kind = "weight", nd.name = "layers.0.attn.w"}, %m0: tensor<8x8xf32> {nd.kind = "weight", nd.name = "layers.0.mlp.up.w"},
                     %a1: tensor<8x8xf32> {nd.kind = "weight", nd.name = "layers.1.attn.w"}, %m1: tensor<8x8xf32> {nd.kind = "weight", nd.name = "layers.1.mlp.up.w"},
                     %out: tensor<8x8xf32> {nd.kind = "weight", nd.name = "head.w"})
      -> (tensor<f32> {nd.kind = "loss_sum"}, tensor<i32> {nd.kind = "loss_count"}) {
    %count = arith.constant dense<4> : tensor<i32>
    %0 = nd.dot_general %x, %in contract = [1] x [0] : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
    %1 = nd.dot_general %0, %a0 contract = [1] x [0] : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
    %2 = nd.dot_general %1, %m0 contract = [1] x [0] : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
    %3 = nd.dot_general %2, %a1 contract = [1] x [0] : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
    %4 = nd.dot_general %3, %m1 contract = [1] x [0] : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
    %5 = nd.dot_general %4, %out contract = [1] x [0] : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
    %6 = nd.reduce sum %5 dims = [0, 1] : tensor<4x8xf32> -> tensor<f32>
    return %6, %count : tensor<f32>, tensor<i32>
  }
}
