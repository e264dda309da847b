// RUN: nd-opt --shard=fsdp3 --report=text %s | FileCheck %s --check-prefix=PADDING
// RUN: nd-opt --shard=fsdp2,tp2 --nodes=2 --system=h100x8 --report=text %s | FileCheck %s --check-prefix=GATHERS
// RUN: nd-opt --shard=fsdp4 --nodes=2 --system=h100x8 --report=text %s | FileCheck %s --check-prefix=INSTEAD
// RUN: nd-opt --shard=tp2 --nodes=2 --system=h100x8 --report=text %s | FileCheck %s --check-prefix=TENSOR
// RUN: nd-opt --shard=dp2 --report=text %s | FileCheck %s --check-prefix=NONE
// RUN: not nd-opt --shard=dp3 --nodes=2 --report=text %s 2>&1 | FileCheck %s --check-prefix=ERROR

// PADDING: Warnings
// PADDING-NEXT: - w is padded by 28.6%: its shape is 7x4, stored as 3x4 on each rank

// GATHERS: - gathers over fsdp leave the node: 2 nodes exchange {{.*}} a step{{$}}
// INSTEAD: - gathers over fsdp leave the node: 2 nodes exchange {{.*}} a step; dp2,fsdp2 would gather inside a node only

// TENSOR: - tp goes over 2 nodes

// NONE-NOT: Warnings

// ERROR: --nodes=2: 3 ranks do not divide over 2 nodes; give a divisor of 3
module attributes {nd.model = {batch = 12 : i64, ignore_index = -100 : i64, name = "toy", seq = 4 : i64}} {
  func.func @forward(%ids: tensor<12x4xi64> {nd.bound = 7 : i64, nd.kind = "input", nd.name = "input_ids"}, %w: tensor<7x4xf32> {nd.kind = "weight", nd.name = "w"})
      -> (tensor<12x4x7xf32> {nd.kind = "logits"}) {
    %0 = nd.take %w[%ids] : tensor<7x4xf32>, tensor<12x4xi64> -> tensor<12x4x4xf32>
    %1 = nd.dot_general %0, %w contract = [2] x [1] : tensor<12x4x4xf32>, tensor<7x4xf32> -> tensor<12x4x7xf32>
    return %1 : tensor<12x4x7xf32>
  }
}
