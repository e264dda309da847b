// RUN: nd-opt %s -nd-verify-sharding -split-input-file -verify-diagnostics

// Partitioned programs with one collective too few, too many, or in the wrong place.
nd.mesh @mesh axes [#nd.axis<"dp" = 2, replicate>]
func.func @forgotten(%x: tensor<2xf32> {nd.sharding = #nd.sharding<@mesh, [{"dp"}]>, nd.global_shape = array<i64: 4>})
    -> (tensor<f32> {nd.kind = "metric", nd.name = "loss", nd.sharding = #nd.sharding<@mesh, []>, nd.global_shape = array<i64>}) {
  %0 = nd.reduce sum %x dims = [0] : tensor<2xf32> -> tensor<f32>
  // expected-error @+1 {{along dp: result metric 'loss' is a partial sum, but has to be equal on all ranks}}
  return %0 : tensor<f32>
}

// -----

nd.mesh @mesh axes [#nd.axis<"dp" = 2, replicate>]
func.func @twice(%x: tensor<2xf32> {nd.sharding = #nd.sharding<@mesh, [{"dp"}]>, nd.global_shape = array<i64: 4>})
    -> (tensor<f32> {nd.sharding = #nd.sharding<@mesh, []>, nd.global_shape = array<i64>}) {
  %0 = nd.reduce sum %x dims = [0] : tensor<2xf32> -> tensor<f32>
  %1 = nd.all_reduce sum %0 over @mesh ["dp"] instance = 1 names = ["x"] reason = "" : tensor<f32>
  // expected-error @+1 {{along dp: combines (sum) operand 0, which is equal on all ranks}}
  %2 = nd.all_reduce sum %1 over @mesh ["dp"] instance = 2 names = ["x"] reason = "" : tensor<f32>
  return %2 : tensor<f32>
}

// -----

nd.mesh @mesh axes [#nd.axis<"dp" = 2, replicate>, #nd.axis<"tp" = 2, tensor>]
func.func @wrong_group(%x: tensor<2xf32> {nd.sharding = #nd.sharding<@mesh, [{"dp"}]>, nd.global_shape = array<i64: 4>})
    -> (tensor<f32> {nd.kind = "metric", nd.name = "loss", nd.sharding = #nd.sharding<@mesh, []>, nd.global_shape = array<i64>}) {
  %0 = nd.reduce sum %x dims = [0] : tensor<2xf32> -> tensor<f32>
  %1 = nd.all_reduce sum %0 over @mesh ["tp"] instance = 1 names = ["x"] reason = "" : tensor<f32>
  // expected-error @+1 {{along dp: result metric 'loss' is a partial sum, but has to be equal on all ranks}}
  return %1 : tensor<f32>
}

// -----

nd.mesh @mesh axes [#nd.axis<"dp" = 2, replicate>]
func.func @wrong_kind(%x: tensor<2xf32> {nd.sharding = #nd.sharding<@mesh, [{"dp"}]>, nd.global_shape = array<i64: 4>}) {
  %0 = nd.reduce max %x dims = [0] : tensor<2xf32> -> tensor<f32>
  // expected-error @+1 {{along dp: combines (sum) operand 0, which is a partial max}}
  %1 = nd.all_reduce sum %0 over @mesh ["dp"] instance = 1 names = ["x"] reason = "" : tensor<f32>
  return
}

// -----

// Clipping by the norm of partial gradients.
nd.mesh @mesh axes [#nd.axis<"dp" = 2, replicate>]
func.func @square(%x: tensor<2x8xf32> {nd.sharding = #nd.sharding<@mesh, [{"dp"}, {}]>, nd.global_shape = array<i64: 4, 8>}) {
  %0 = nd.reduce sum %x dims = [0] : tensor<2x8xf32> -> tensor<8xf32>
  // expected-error @+1 {{along dp: operand 0 of 'arith.mulf' is a partial sum, but the operation needs its reduced value}}
  %1 = arith.mulf %0, %0 : tensor<8xf32>
  return
}

// -----

// A whole bias added to partial products: every rank would add it.
nd.mesh @mesh axes [#nd.axis<"dp" = 2, replicate>]
func.func @bias(%x: tensor<2x8xf32> {nd.sharding = #nd.sharding<@mesh, [{"dp"}, {}]>, nd.global_shape = array<i64: 4, 8>},
                %b: tensor<8xf32> {nd.sharding = #nd.sharding<@mesh, [{}]>, nd.global_shape = array<i64: 8>}) {
  %0 = nd.reduce sum %x dims = [0] : tensor<2x8xf32> -> tensor<8xf32>
  // expected-error @+1 {{along dp: operand 0 of 'arith.addf' is a partial sum, but the operation needs its reduced value}}
  %1 = arith.addf %0, %b : tensor<8xf32>
  return
}

// -----

nd.mesh @mesh axes [#nd.axis<"dp" = 2, replicate>]
func.func @addend(%i: tensor<2xi64> {nd.sharding = #nd.sharding<@mesh, [{"dp"}]>, nd.global_shape = array<i64: 4>},
                  %u: tensor<2x8xf32> {nd.sharding = #nd.sharding<@mesh, [{"dp"}, {}]>, nd.global_shape = array<i64: 4, 8>},
                  %w: tensor<6x8xf32> {nd.sharding = #nd.sharding<@mesh, [{}, {}]>, nd.global_shape = array<i64: 6, 8>}) {
  // expected-error @+1 {{along dp: 'nd.scatter_add' adds operand 2, which is equal on all ranks, to a result that is a partial sum}}
  %0 = nd.scatter_add %i, %u init %w : tensor<6x8xf32> : tensor<2xi64>, tensor<2x8xf32> -> tensor<6x8xf32>
  return
}

// -----

// Reshapes carry the sharded dimension along, also where a rank has one sequence.
nd.mesh @mesh axes [#nd.axis<"dp" = 2, replicate>]
func.func @one_sequence(%x: tensor<1x6xf32> {nd.sharding = #nd.sharding<@mesh, [{"dp"}, {}]>, nd.global_shape = array<i64: 2, 6>})
    -> (tensor<f32> {nd.sharding = #nd.sharding<@mesh, []>, nd.global_shape = array<i64>}) {
  %0 = nd.reshape %x : tensor<1x6xf32> -> tensor<6xf32>
  %1 = nd.reshape %0 : tensor<6xf32> -> tensor<1x6xf32>
  %2 = arith.negf %1 : tensor<1x6xf32>
  %3 = nd.reduce sum %2 dims = [0, 1] : tensor<1x6xf32> -> tensor<f32>
  // expected-error @+1 {{along dp: result 0 is a partial sum, but has to be equal on all ranks}}
  return %3 : tensor<f32>
}

// -----

nd.mesh @mesh axes [#nd.axis<"dp" = 2, replicate>]
func.func @misaligned(%x: tensor<4x4xf32> {nd.sharding = #nd.sharding<@mesh, [{"dp"}, {}]>, nd.global_shape = array<i64: 8, 4>},
                      %y: tensor<4x4xf32> {nd.sharding = #nd.sharding<@mesh, [{}, {"dp"}]>, nd.global_shape = array<i64: 4, 8>}) {
  // expected-error @+1 {{along dp: operands 0 and 1 of 'arith.addf' are sharded in dimensions that do not belong together}}
  %0 = arith.addf %x, %y : tensor<4x4xf32>
  return
}

// -----

nd.mesh @mesh axes [#nd.axis<"dp" = 2, replicate>]
func.func @whole(%x: tensor<4x4xf32> {nd.sharding = #nd.sharding<@mesh, [{}, {"dp"}]>, nd.global_shape = array<i64: 4, 8>}) {
  // expected-error @+1 {{along dp: 'nd.softmax' needs the whole of operand 0, which is sharded in dimension 1}}
  %0 = nd.softmax %x dim = 1 : tensor<4x4xf32>
  return
}

// -----

nd.mesh @mesh axes [#nd.axis<"dp" = 2, replicate>]
func.func @gather(%x: tensor<4x4xf32> {nd.sharding = #nd.sharding<@mesh, [{}, {"dp"}]>, nd.global_shape = array<i64: 4, 8>}) {
  // expected-error @+1 {{along dp: gathers dimension 0 of a tensor that is sharded in dimension 1}}
  %0 = nd.all_gather %x over @mesh ["dp"] dims = [0] instance = 1 names = ["x"] reason = "" : tensor<4x4xf32> -> tensor<8x4xf32>
  return
}

// -----

nd.mesh @mesh axes [#nd.axis<"dp" = 2, replicate>]
// expected-error @+1 {{argument 0 has local type 'tensor<4xf32>', which is no shard of its nd.global_shape by #nd.sharding<@mesh, [{"dp"}]>}}
func.func @size(%x: tensor<4xf32> {nd.sharding = #nd.sharding<@mesh, [{"dp"}]>, nd.global_shape = array<i64: 4>}) {
  return
}

// -----

nd.mesh @mesh axes [#nd.axis<"dp" = 2, replicate>]
// expected-error @+1 {{argument 0 has no nd.sharding and nd.global_shape; run nd-partition first}}
func.func @plain(%x: tensor<4xf32>) {
  return
}

// -----

nd.mesh @mesh axes [#nd.axis<"dp" = 2, replicate>]
func.func @instances(%x: tensor<2xf32> {nd.sharding = #nd.sharding<@mesh, [{"dp"}]>, nd.global_shape = array<i64: 4>}) {
  // expected-note @+1 {{the other one is here}}
  %0 = nd.all_gather %x over @mesh ["dp"] dims = [0] instance = 1 names = ["x"] reason = "" : tensor<2xf32> -> tensor<4xf32>
  // expected-error @+1 {{two collectives have instance 1; CSE could merge them}}
  %1 = nd.all_gather %x over @mesh ["dp"] dims = [0] instance = 1 names = ["x"] reason = "" : tensor<2xf32> -> tensor<4xf32>
  return
}

// -----

nd.mesh @mesh axes [#nd.axis<"dp" = 2, replicate>]
func.func @exchange(%x: tensor<4x4xf32> {nd.sharding = #nd.sharding<@mesh, [{"dp"}, {}]>, nd.global_shape = array<i64: 8, 4>}) {
  // expected-error @+1 {{along dp: joins dimension 1 of a tensor that is sharded in dimension 0}}
  %0 = nd.all_to_all %x over @mesh ["dp"] split_dim = 0 concat_dim = 1 instance = 1 name = "x" reason = "" : tensor<4x4xf32> -> tensor<2x8xf32>
  return
}

// -----

nd.mesh @mesh axes [#nd.axis<"dp" = 2, replicate>]
func.func @slice(%x: tensor<4x4xf32> {nd.sharding = #nd.sharding<@mesh, [{"dp"}, {}]>, nd.global_shape = array<i64: 8, 4>}) {
  // expected-error @+1 {{along dp: cuts a shard out of a tensor that is sharded in dimension 0}}
  %0 = nd.all_slice %x over @mesh ["dp"] dim = 0 instance = 1 name = "x" reason = "" : tensor<4x4xf32> -> tensor<2x4xf32>
  return
}

// -----

nd.mesh @mesh axes [#nd.axis<"dp" = 2, replicate>]
func.func @gather_twice(%x: tensor<4x4xf32> {nd.sharding = #nd.sharding<@mesh, [{"dp"}, {}]>, nd.global_shape = array<i64: 8, 4>}) {
  %0 = nd.all_gather %x over @mesh ["dp"] dims = [0] instance = 1 names = ["x"] reason = "" : tensor<4x4xf32> -> tensor<8x4xf32>
  // expected-error @+1 {{along dp: gathers dimension 0 of a tensor that is equal on all ranks}}
  %1 = nd.all_gather %0 over @mesh ["dp"] dims = [0] instance = 2 names = ["x"] reason = "" : tensor<8x4xf32> -> tensor<16x4xf32>
  return
}

// -----

nd.mesh @mesh axes [#nd.axis<"dp" = 2, replicate>]
func.func @scattered_in_the_wrong_dimension(%x: tensor<4x4x2xf32> {nd.sharding = #nd.sharding<@mesh, [{"dp"}, {}, {}]>, nd.global_shape = array<i64: 8, 4, 2>})
    -> (tensor<4x1xf32> {nd.sharding = #nd.sharding<@mesh, [{"dp"}, {}]>, nd.global_shape = array<i64: 8, 1>}) {
  %0 = nd.reduce sum %x dims = [0] : tensor<4x4x2xf32> -> tensor<4x2xf32>
  %1 = nd.reduce_scatter sum %0 over @mesh ["dp"] dims = [1] instance = 1 names = ["x"] reason = "" : tensor<4x2xf32> -> tensor<4x1xf32>
  // expected-error @+1 {{along dp: result 0 is sharded in dimension 1, but has to be sharded in dimension 0}}
  return %1 : tensor<4x1xf32>
}

// -----

// Shards that went on by a place along a ring are no longer those of their ranks.
nd.mesh @mesh axes [#nd.axis<"cp" = 3, context>]
func.func @ring_not_closed(%x: tensor<4x4xf32> {nd.sharding = #nd.sharding<@mesh, [{"cp"}, {}]>, nd.global_shape = array<i64: 12, 4>}) {
  %0 = nd.permute %x over @mesh ["cp"] sources = [2, 0, 1] instance = 1 name = "x" reason = "" : tensor<4x4xf32>
  // expected-error @+1 {{along cp: operands 0 and 1 of 'arith.addf' are shards of different ranks: operand 1 is sharded in dimension 0, each rank with the shard of the one 1 before it}}
  %1 = arith.addf %x, %0 : tensor<4x4xf32>
  return
}

// -----

nd.mesh @mesh axes [#nd.axis<"cp" = 3, context>]
func.func @ring_result(%x: tensor<4x4xf32> {nd.sharding = #nd.sharding<@mesh, [{"cp"}, {}]>, nd.global_shape = array<i64: 12, 4>})
    -> (tensor<4x4xf32> {nd.sharding = #nd.sharding<@mesh, [{"cp"}, {}]>, nd.global_shape = array<i64: 12, 4>}) {
  %0 = nd.permute %x over @mesh ["cp"] sources = [2, 0, 1] instance = 1 name = "x" reason = "" : tensor<4x4xf32>
  // expected-error @+1 {{along cp: result 0 is sharded in dimension 0, each rank with the shard of the one 1 before it, but has to be sharded in dimension 0}}
  return %0 : tensor<4x4xf32>
}

// -----

// A permute that says what it does does that.
nd.mesh @mesh axes [#nd.axis<"dp" = 2, replicate>, #nd.axis<"tp" = 2, tensor>]
func.func @wrong_sources(%x: tensor<4x4xf32> {nd.sharding = #nd.sharding<@mesh, [{"dp"}, {}]>, nd.global_shape = array<i64: 8, 4>}) {
  // expected-error @+1 {{rank 1 does not receive its block of #nd.sharding<@mesh, [{"tp"}, {}]> from position 1, which has a block of #nd.sharding<@mesh, [{"dp"}, {}]>}}
  %0 = nd.permute %x over @mesh ["dp", "tp"] sources = [0, 1, 2, 3] before = <@mesh, [{"dp"}, {}]> after = <@mesh, [{"tp"}, {}]> instance = 1 name = "x" reason = "" : tensor<4x4xf32>
  return
}

// -----

nd.mesh @mesh axes [#nd.axis<"dp" = 2, replicate>, #nd.axis<"tp" = 2, tensor>]
func.func @wrong_before(%x: tensor<4x4xf32> {nd.sharding = #nd.sharding<@mesh, [{"dp"}, {}]>, nd.global_shape = array<i64: 8, 4>}) {
  // expected-error @+1 {{along dp: permutes a tensor that is sharded in dimension 0, but says that it is sharded by #nd.sharding<@mesh, [{"tp"}, {}]>}}
  %0 = nd.permute %x over @mesh ["dp", "tp"] sources = [0, 2, 1, 3] before = <@mesh, [{"tp"}, {}]> after = <@mesh, [{"dp"}, {}]> instance = 1 name = "x" reason = "" : tensor<4x4xf32>
  return
}

// -----

// Places of the first shard on every rank.
nd.mesh @mesh axes [#nd.axis<"tp" = 2, tensor>]
func.func @same_places(%x: tensor<4x4xi32> {nd.sharding = #nd.sharding<@mesh, [{"tp"}, {}]>, nd.global_shape = array<i64: 8, 4>}) {
  %0 = nd.iota dim = 1 : tensor<4x4xi32>
  %1 = arith.addi %x, %0 : tensor<4x4xi32>
  %2 = nd.iota dim = 0 : tensor<4x4xi32>
  // expected-error @+1 {{along tp: 'arith.addi' joins operand 0, which is sharded in dimension 0, with operand 1, which is equal on all ranks: no rank has its own part of it}}
  %3 = arith.addi %1, %2 : tensor<4x4xi32>
  return
}

// -----

nd.mesh @mesh axes [#nd.axis<"tp" = 2, tensor>]
func.func @whole_result(%x: tensor<4xf32> {nd.sharding = #nd.sharding<@mesh, [{}]>, nd.global_shape = array<i64: 4>})
    -> (tensor<4xf32> {nd.sharding = #nd.sharding<@mesh, [{"tp"}]>, nd.global_shape = array<i64: 8>}) {
  // expected-error @+1 {{along tp: result 0 is equal on all ranks, but has to be sharded in dimension 0}}
  return %x : tensor<4xf32>
}

// -----

// Positions in another order than the tokens.
nd.mesh @mesh axes [#nd.axis<"cp" = 2, context>]
// expected-error @+1 {{argument 1 has the sequence in the natural order, but argument 0 in the order [0, 3, 1, 2]}}
func.func @order(%x: tensor<2x8xi64> {nd.chunks = {dim = 1 : i64, order = array<i64: 0, 3, 1, 2>, size = 4 : i64}, nd.global_shape = array<i64: 2, 16>, nd.sequence = 1 : i64, nd.sharding = #nd.sharding<@mesh, [{}, {"cp"}]>},
                 %p: tensor<2x8xi64> {nd.global_shape = array<i64: 2, 16>, nd.sequence = 1 : i64, nd.sharding = #nd.sharding<@mesh, [{}, {"cp"}]>}) {
  return
}
