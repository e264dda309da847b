func.func @forward(%x: tensor<4x8xf32> {nd.kind = "input", nd.name = "in"}, %w: tensor<8x4xf32> {nd.kind = "weight", nd.name = "w"})
    -> (tensor<4x4xf32> {nd.kind = "output", nd.name = "out"}) {
  %0 = nd.dot_general %x, %w contract = [1] x [0] : tensor<4x8xf32>, tensor<8x4xf32> -> tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}
