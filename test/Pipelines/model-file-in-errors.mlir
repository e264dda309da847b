// RUN: not nd-opt --shard=dp3 %s -o /dev/null 2>&1 | FileCheck %s

// A location that names the model's file but no line is printed as such.
// CHECK: {{^}}model.onnx: error: dp = 3 does not divide dimension 0 of input 'x', which has size 2
module attributes {nd.model = {batch = 2 : i64}} {
  func.func @forward(%x: tensor<2x3x7xf32> {nd.kind = "input", nd.name = "x"}, %w: tensor<7x5xf32> {nd.kind = "weight", nd.name = "w"})
      -> (tensor<2x3x5xf32> {nd.kind = "logits"}) {
    %0 = nd.dot_general %x, %w contract = [2] x [0] : tensor<2x3x7xf32>, tensor<7x5xf32> -> tensor<2x3x5xf32>
    return %0 : tensor<2x3x5xf32>
  } loc("model.onnx")
} loc("model.onnx")
