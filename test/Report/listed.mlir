// RUN: nd-opt --shard=dp2 --report=json %s | FileCheck %s --check-prefix=JSON
// RUN: nd-opt --shard=dp2 --report=text %s | FileCheck %s --check-prefix=TEXT

// An attention that is written out: its scores, and the logits of all tokens.
// JSON: "listed": [
// JSON: "what": "scores",
// JSON-NEXT: "value": "result 0 of 'nd.gemm'",
// JSON-NEXT: "shape": [
// JSON-NEXT: 2,
// JSON-NEXT: 6,
// JSON-NEXT: 6
// JSON-NEXT: ],
// JSON-NEXT: "type": "f32",
// JSON-NEXT: "bytes": 288,
// JSON-NEXT: "location": "listed.mlir:{{[0-9]+}}"
// JSON: "what": "logits",

// TEXT: Scores in memory: the sequence in two dimensions (an attention that is written out, a general mask)
// TEXT: result 0 of 'nd.gemm'  2x6x6
// TEXT: Logits of all tokens of a rank in memory (--loss-chunk)
// TEXT: result 0 of 'nd.gemm'  12x10
module attributes {nd.model = {batch = 4 : i64, seq = 6 : i64}} {
  func.func @forward(%ids: tensor<4x6xi64> {nd.kind = "input", nd.name = "input_ids"},
                     %table: tensor<10x8xf32> {nd.kind = "weight", nd.name = "table"},
                     %head: tensor<10x8xf32> {nd.kind = "weight", nd.name = "head"}) -> (tensor<4x6x10xf32> {nd.kind = "logits"}) {
    %x = nd.take %table[%ids] : tensor<10x8xf32>, tensor<4x6xi64> -> tensor<4x6x8xf32>
    %scores = nd.dot_general %x, %x batch = [0] x [0] contract = [2] x [2] : tensor<4x6x8xf32>, tensor<4x6x8xf32> -> tensor<4x6x6xf32>
    %tanh = math.tanh %scores : tensor<4x6x6xf32>
    %y = nd.dot_general %tanh, %x batch = [0] x [0] contract = [2] x [1] : tensor<4x6x6xf32>, tensor<4x6x8xf32> -> tensor<4x6x8xf32>
    %logits = nd.dot_general %y, %head contract = [2] x [1] : tensor<4x6x8xf32>, tensor<10x8xf32> -> tensor<4x6x10xf32>
    return %logits : tensor<4x6x10xf32>
  }
}
