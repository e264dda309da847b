// A step is built for a number of nodes; a report on it says what its ranks send, for these and no other.
// RUN: nd-opt --shard=dp2,fsdp2 --nodes=2 %s -o %t.mlir
// RUN: nd-opt --report=json %t.mlir | FileCheck %s --check-prefix=BUILT
// RUN: nd-opt --report=json --nodes=2 --system=h100x8 %t.mlir | FileCheck %s --check-prefix=BUILT
// RUN: not nd-opt --report=json --nodes=4 %t.mlir 2>&1 | FileCheck %s --check-prefix=OTHER
// RUN: nd-opt --shard=dp4 %s -o %t.one.mlir
// RUN: not nd-opt --report=json --nodes=2 %t.one.mlir 2>&1 | FileCheck %s --check-prefix=ONE
// RUN: echo '{name: small, flops: {f32: 1e12}, memory_bytes: 1e9, memory_bandwidth: 1e11, inside_node: {bandwidth: 1e10, latency: 1e-6}, between_nodes: {bandwidth: 1e9, latency: 1e-5}, ranks_per_node: 2}' > %t.yaml
// RUN: not nd-opt --report=json --system=%t.yaml %t.one.mlir 2>&1 | FileCheck %s --check-prefix=SMALL

// BUILT: "nodes": 2
// BUILT: "sent_between_nodes": {{[1-9]}}
// OTHER: error: --nodes=4: this step was built for 2 nodes and runs as such; build it with --nodes=4, or leave the option out
// ONE: error: --nodes=2: this step was built for 1 node and runs as such; build it with --nodes=2, or leave the option out
// SMALL: error: --nodes=1: 4 ranks on a node, but one of small has 2; give --nodes=2 or more
// SMALL: note: the step was built for 1 node; build it with the --system or --nodes that it shall run on
module attributes {nd.model = {batch = 12 : i64, ignore_index = -100 : i64, name = "toy", seq = 4 : i64}} {
  func.func @forward(%ids: tensor<12x4xi64> {nd.bound = 8 : i64, nd.kind = "input", nd.name = "input_ids"}, %w: tensor<8x4xf32> {nd.kind = "weight", nd.name = "w"})
      -> (tensor<12x4x8xf32> {nd.kind = "logits"}) {
    %0 = nd.take %w[%ids] : tensor<8x4xf32>, tensor<12x4xi64> -> tensor<12x4x4xf32>
    %1 = nd.dot_general %0, %w batch = [] x [] contract = [2] x [1] : tensor<12x4x4xf32>, tensor<8x4xf32> -> tensor<12x4x8xf32>
    return %1 : tensor<12x4x8xf32>
  }
}
