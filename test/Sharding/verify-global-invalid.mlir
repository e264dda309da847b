// RUN: nd-opt %s -nd-verify-sharding -split-input-file -verify-diagnostics

// A forgotten reduction: the loss leaves partial.
nd.mesh @mesh axes [#nd.axis<"dp" = 2, replicate>]
func.func @forgotten(%x: tensor<4xf32, #nd.sharding<@mesh, [{"dp"}]>>) -> (tensor<f32, #nd.sharding<@mesh, [], unreduced = sum {"dp"}>> {nd.kind = "metric", nd.name = "loss"}) {
  %0 = nd.reduce sum %x dims = [0] : tensor<4xf32, #nd.sharding<@mesh, [{"dp"}]>> -> tensor<f32, #nd.sharding<@mesh, [], unreduced = sum {"dp"}>>
  // expected-error @+1 {{result metric 'loss' is unreduced over dp: every rank would return a partial value}}
  return %0 : tensor<f32, #nd.sharding<@mesh, [], unreduced = sum {"dp"}>>
}

// -----

// The same, hidden by a type that claims the sum is whole.
nd.mesh @mesh axes [#nd.axis<"dp" = 2, replicate>]
func.func @claimed(%x: tensor<4xf32, #nd.sharding<@mesh, [{"dp"}]>>) -> tensor<f32, #nd.sharding<@mesh, []>> {
  // expected-error @+1 {{result 0 of 'nd.reduce' is unreduced over [] by its type, but over [dp] by the operation's rule}}
  %0 = nd.reduce sum %x dims = [0] : tensor<4xf32, #nd.sharding<@mesh, [{"dp"}]>> -> tensor<f32, #nd.sharding<@mesh, []>>
  return %0 : tensor<f32, #nd.sharding<@mesh, []>>
}

// -----

// A partial value where a whole one is needed: the square of a partial gradient.
nd.mesh @mesh axes [#nd.axis<"dp" = 2, replicate>]
func.func @square(%x: tensor<4x8xf32, #nd.sharding<@mesh, [{"dp"}, {}]>>) {
  %0 = nd.reduce sum %x dims = [0] : tensor<4x8xf32, #nd.sharding<@mesh, [{"dp"}, {}]>> -> tensor<8xf32, #nd.sharding<@mesh, [{}], unreduced = sum {"dp"}>>
  // expected-error @+1 {{operand 0 of 'arith.mulf' (result 0 of 'nd.reduce') is unreduced over dp, but the operation needs its reduced value}}
  %1 = arith.mulf %0, %0 : tensor<8xf32, #nd.sharding<@mesh, [{}], unreduced = sum {"dp"}>>
  return
}

// -----

// A partial sum is added to as a whole one cannot be.
nd.mesh @mesh axes [#nd.axis<"dp" = 2, replicate>]
func.func @addend(%i: tensor<4xi64, #nd.sharding<@mesh, [{"dp"}]>>, %u: tensor<4x8xf32, #nd.sharding<@mesh, [{"dp"}, {}]>>, %w: tensor<6x8xf32, #nd.sharding<@mesh, [{}, {}]>>) {
  // expected-error @+1 {{'nd.scatter_add' adds operand 2, which is reduced, to sums that are unreduced over dp: every rank would add it}}
  %0 = nd.scatter_add %i, %u init %w : tensor<6x8xf32, #nd.sharding<@mesh, [{}, {}]>> : tensor<4xi64, #nd.sharding<@mesh, [{"dp"}]>>, tensor<4x8xf32, #nd.sharding<@mesh, [{"dp"}, {}]>> -> tensor<6x8xf32, #nd.sharding<@mesh, [{}, {}], unreduced = sum {"dp"}>>
  return
}

// -----

nd.mesh @mesh axes [#nd.axis<"dp" = 2, replicate>]
func.func @lost(%x: tensor<4x8xf32, #nd.sharding<@mesh, [{"dp"}, {}]>>) {
  // expected-error @+1 {{'nd.transpose' runs on one sharding, but dimension 0 of argument 0 is sharded over [dp] and dimension 1 of result 0 of 'nd.transpose' over []}}
  %0 = nd.transpose %x permutation = [1, 0] : tensor<4x8xf32, #nd.sharding<@mesh, [{"dp"}, {}]>> -> tensor<8x4xf32, #nd.sharding<@mesh, [{}, {}]>>
  return
}

// -----

nd.mesh @mesh axes [#nd.axis<"dp" = 2, replicate>]
func.func @whole(%x: tensor<4x8xf32, #nd.sharding<@mesh, [{}, {"dp"}]>>) {
  // expected-error @+1 {{'nd.softmax' needs the whole of dimension 1 of argument 0, but it is sharded over dp}}
  %0 = nd.softmax %x dim = 1 : tensor<4x8xf32, #nd.sharding<@mesh, [{}, {"dp"}]>>
  return
}

// -----

nd.mesh @mesh axes [#nd.axis<"dp" = 3, replicate>]
// expected-error @+1 {{axis "dp" of size 3 does not divide dimension 0 of argument 0, which has size 4; sizes of "dp" that work: 1, 2, 4}}
func.func @size(%x: tensor<4x8xf32, #nd.sharding<@mesh, [{"dp"}, {}]>>) {
  return
}

// -----

nd.mesh @mesh axes [#nd.axis<"dp" = 2, replicate>]
func.func @no_sharding(%x: tensor<4xf32, #nd.sharding<@mesh, [{}]>>) {
  // expected-error @+1 {{result 0 of 'arith.constant' has no sharding in its type 'tensor<4xf32>'; run nd-insert-reshards first}}
  %0 = arith.constant dense<1.0> : tensor<4xf32>
  return
}

// -----

nd.mesh @mesh axes [#nd.axis<"dp" = 2, replicate>]
// expected-error @+1 {{argument 0 is annotated #nd.sharding<@mesh, [{}]> but has sharding #nd.sharding<@mesh, [{"dp"}]>}}
func.func @boundary(%x: tensor<4xf32, #nd.sharding<@mesh, [{"dp"}]>> {nd.sharding = #nd.sharding<@mesh, [{}]>}) {
  return
}
