// RUN: not nd-opt %s --shard=tp9 2>&1 | FileCheck %s --check-prefix=TENSOR
// RUN: not nd-opt %s --shard=cp5 2>&1 | FileCheck %s --check-prefix=CONTEXT
// RUN: nd-opt %s --shard=tp8,cp4 -o /dev/null

// TENSOR: error: tp = 9 is more than any dimension that it can shard: the largest is part of dimension 0 of weight 'up', of size 8; sizes of tp that work: 1 to 8
// CONTEXT: error: cp = 5 is more than dimension 1 of input 'input_ids', of size 4; sizes of cp that work: 1 to 4
module attributes {nd.model = {batch = 2 : i64, seq = 4 : i64, ignore_index = -100 : i64, blocks = []}} {
  func.func @forward(%ids: tensor<2x4xi64> {nd.bound = 6 : i64, nd.kind = "input", nd.name = "input_ids"},
                     %table: tensor<6x4xf32> {nd.kind = "weight", nd.name = "table"},
                     %up: tensor<8x4xf32> {nd.kind = "weight", nd.name = "up"},
                     %down: tensor<4x8xf32> {nd.kind = "weight", nd.name = "down"})
      -> (tensor<2x4x6xf32> {nd.kind = "logits"}) {
    %0 = nd.take %table[%ids] : tensor<6x4xf32>, tensor<2x4xi64> -> tensor<2x4x4xf32>
    %1 = nd.dot_general %0, %up contract = [2] x [1] : tensor<2x4x4xf32>, tensor<8x4xf32> -> tensor<2x4x8xf32>
    %2 = math.tanh %1 : tensor<2x4x8xf32>
    %3 = nd.dot_general %2, %down contract = [2] x [1] : tensor<2x4x8xf32>, tensor<4x8xf32> -> tensor<2x4x4xf32>
    %4 = nd.dot_general %3, %table contract = [2] x [1] : tensor<2x4x4xf32>, tensor<6x4xf32> -> tensor<2x4x6xf32>
    return %4 : tensor<2x4x6xf32>
  }
}
