// RUN: nd-opt --shard=dp3 --report=json %s | FileCheck %s --check-prefix=JSON
// RUN: nd-opt --shard=dp3 --report=text %s | FileCheck %s --check-prefix=TEXT --match-full-lines --strict-whitespace
// RUN: nd-opt --shard=dp3 --report=json --report-file=%t.json %s | FileCheck %s --check-prefix=IR
// RUN: FileCheck %s --check-prefix=JSON < %t.json
// RUN: nd-opt --shard=dp3 %s -o %t.mlir && nd-opt --report=json %t.mlir | FileCheck %s --check-prefix=JSON

// 28 elements of f32 over 3 ranks: 2 (3 - 1) 112 bytes in all.
// JSON: "format": "nd.report"
// JSON: "name": "host"
// JSON-NEXT: "ranks": 3
// JSON-NEXT: "nodes": 1
// JSON: "name": "w"
// JSON-NEXT: "type": "f32"
// JSON-NEXT: "global_shape": [
// JSON-NEXT: 7,
// JSON-NEXT: 4
// JSON: "bytes": 112
// JSON-NEXT: "state_bytes": 224
// JSON-NEXT: "padding": 0
// JSON: "reductions": [
// JSON-NEXT: "all_reduce over dp"
// JSON: "group": "dp"
// JSON-NEXT: "ranks": 3
// JSON: "payload_bytes": 112
// JSON-NEXT: "sent_bytes": 448
// JSON-NEXT: "sent_per_rank": 149.3
// JSON-NEXT: "sent_between_nodes": 0
// JSON-NEXT: "name": "gradient of w"
// JSON-NEXT: "reason": "{{.*}} combines
// JSON-NEXT: "location": "data-parallel.mlir{{.*}}:
// JSON-NEXT: "phase": "reduce"
// JSON: "sent": {
// JSON-NEXT: "dp": {
// JSON-NEXT: "all_reduce": 448
// JSON-NEXT: },
// JSON-NEXT: "scalar": {
// JSON-NEXT: "all_reduce": 32
// JSON: "parameters": 112
// JSON-NEXT: "master": 0
// JSON-NEXT: "moments": 224
// JSON-NEXT: "gradients": 112
// 6 * 7 * 4: the tied table is read by a product. Forward and two products backward of 2 * 2 * 3 * 7 * 4 each.
// JSON: "tokens": 18
// JSON-NEXT: "model_flops_per_token": 168
// JSON-NEXT: "model_flops": 3024
// JSON-NEXT: "executed_flops_per_rank": 1008
// JSON: "mfu": null

// TEXT:toy on 3 ranks, 1 node of host
// TEXT-EMPTY:
// TEXT-NEXT:Mesh, outer to inner
// TEXT-NEXT:  axis  size  of them in a node  nodes
// TEXT-NEXT:  dp       3                  3      1
// TEXT-EMPTY:
// TEXT-NEXT:Parameters, and what a rank stores of them
// TEXT-NEXT:  parameter  count  type  shape  sharding  on a rank  bytes  state  used       gradient
// TEXT-NEXT:  w              1  f32     7x4  [_, _]          7x4  112 B  224 B  as stored  all_reduce over dp
// TEXT-NEXT:  all            1                                    112 B  224 B
// TEXT-EMPTY:
// TEXT-NEXT:Sent in a step
// TEXT-NEXT:  group   kind        count  bytes, all ranks  by a rank  between nodes  time     exposed
// TEXT:  dp      all_reduce      1               448      149 B            0 B  {{.*}}
// TEXT:Memory of a rank at its peak, at {{.*}}
// TEXT:Computation of a step

// IR: nd.all_reduce
// IR-NOT: nd.report
module attributes {nd.model = {batch = 6 : i64, ignore_index = -100 : i64, name = "toy", seq = 3 : i64}} {
  func.func @forward(%ids: tensor<6x3xi64> {nd.bound = 7 : i64, nd.kind = "input", nd.name = "input_ids"}, %w: tensor<7x4xf32> {nd.kind = "weight", nd.name = "w"})
      -> (tensor<6x3x7xf32> {nd.kind = "logits"}) {
    %0 = nd.take %w[%ids] : tensor<7x4xf32>, tensor<6x3xi64> -> tensor<6x3x4xf32>
    %1 = nd.dot_general %0, %w contract = [2] x [1] : tensor<6x3x4xf32>, tensor<7x4xf32> -> tensor<6x3x7xf32>
    return %1 : tensor<6x3x7xf32>
  }
}
