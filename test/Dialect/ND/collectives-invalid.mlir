// RUN: nd-opt %s -split-input-file -verify-diagnostics

// expected-error @+1 {{names axis "dp" twice}}
nd.mesh @mesh axes [#nd.axis<"dp" = 2, replicate>, #nd.axis<"dp" = 2, shard>]

// -----

// expected-error @+1 {{mesh axis 'dp' has size 0, but a size is at least 1}}
nd.mesh @mesh axes [#nd.axis<"dp" = 0, replicate>]

// -----

// expected-error @+1 {{more ranks than fit in 64 bits}}
nd.mesh @mesh axes [#nd.axis<"dp" = 9223372036854775807, replicate>, #nd.axis<"tp" = 2, tensor>]

// -----

// expected-error @+1 {{has 6 ranks, which do not fill 4 nodes evenly}}
nd.mesh @mesh axes [#nd.axis<"dp" = 6, replicate>] nodes 4

// -----

// expected-error @+1 {{has 6 ranks, which do not fill 0 nodes evenly}}
nd.mesh @mesh axes [#nd.axis<"dp" = 6, replicate>] nodes 0

// -----

// expected-error @+1 {{axis "dp" occurs twice in one sharding}}
func.func private @f(tensor<8x4xf32, #nd.sharding<@mesh, [{"dp"}, {"dp"}]>>)

// -----

// expected-error @+1 {{axis "dp" occurs twice in one sharding}}
func.func private @f(tensor<8x4xf32, #nd.sharding<@mesh, [{"dp"}, {}], unreduced = sum {"dp"}>>)

// -----

// expected-error @+1 {{expected an axis after 'unreduced'}}
func.func private @f(tensor<8x4xf32, #nd.sharding<@mesh, [{"dp"}, {}], unreduced = sum {}>>)

// -----

// expected-error @+1 {{expected a reduction (sum, max, min) but found 'mean'}}
func.func private @f(tensor<8x4xf32, #nd.sharding<@mesh, [{"dp"}, {}], unreduced = mean {"tp"}>>)

// -----

// expected-error @+1 {{sharding of 1 dimensions on a tensor of 2}}
func.func private @f(tensor<8x4xf32, #nd.sharding<@mesh, [{"dp"}]>>)

// -----

func.func @unreduced_from_nothing(%a: tensor<4xf32, #nd.sharding<@mesh, [{}]>>) {
  // expected-error @+1 {{result is unreduced over axis "dp" but the operand is not; a reshard can only reduce}}
  %0 = nd.reshard %a instance = 1 name = "a" reason = "" : tensor<4xf32, #nd.sharding<@mesh, [{}]>> -> tensor<4xf32, #nd.sharding<@mesh, [{}], unreduced = sum {"dp"}>>
  return
}

// -----

func.func @no_sharding(%a: tensor<4xf32>) {
  // expected-error @+1 {{expected a #nd.sharding on the types of operand and result}}
  %0 = nd.reshard %a instance = 1 name = "a" reason = "" : tensor<4xf32> -> tensor<4xf32>
  return
}

// -----

func.func @scale_by_vector(%a: tensor<4xf32>, %b: tensor<4xf32>) {
  // expected-error @+1 {{expected factor of rank 0 (a number) but found rank 1}}
  %0 = nd.scale %a, %b : tensor<4xf32>, tensor<4xf32>
  return
}

// -----

func.func @no_mesh(%a: tensor<4xf32>) {
  // expected-error @+1 {{refers to @mesh, which is no nd.mesh of this module}}
  %0 = nd.all_reduce sum %a over @mesh ["dp"] instance = 1 names = ["a"] reason = "" : tensor<4xf32>
  return
}

// -----

// expected-note @+1 {{its axes are [#nd.axis<"dp" = 2, replicate>]}}
nd.mesh @mesh axes [#nd.axis<"dp" = 2, replicate>]
func.func @unknown_axis(%a: tensor<4xf32>) {
  // expected-error @+1 {{axis "tp" is not in mesh @mesh}}
  %0 = nd.all_reduce sum %a over @mesh ["tp"] instance = 1 names = ["a"] reason = "" : tensor<4xf32>
  return
}

// -----

nd.mesh @mesh axes [#nd.axis<"dp" = 2, replicate>]
func.func @names(%a: tensor<4xf32>) {
  // expected-error @+1 {{expected one name per operand but found 2 for 1}}
  %0 = nd.all_reduce sum %a over @mesh ["dp"] instance = 1 names = ["a", "b"] reason = "" : tensor<4xf32>
  return
}

// -----

nd.mesh @mesh axes [#nd.axis<"dp" = 2, replicate>]
func.func @element_types(%a: tensor<4xf32>, %b: tensor<4xi64>) {
  // expected-error @+1 {{every operand}}
  %0:2 = nd.all_reduce sum %a, %b over @mesh ["dp"] instance = 1 names = ["a", "b"] reason = "" : tensor<4xf32>, tensor<4xi64>
  return
}

// -----

nd.mesh @mesh axes [#nd.axis<"dp" = 2, replicate>]
func.func @axis_twice(%a: tensor<4xf32>) {
  // expected-error @+1 {{names axis "dp" twice}}
  %0 = nd.all_reduce sum %a over @mesh ["dp", "dp"] instance = 1 names = ["a"] reason = "" : tensor<4xf32>
  return
}

// -----

nd.mesh @mesh axes [#nd.axis<"dp" = 2, replicate>]
func.func @gathered_size(%a: tensor<4xf32>) {
  // expected-error @+1 {{expected result of shape [8] but found [12]}}
  %0 = nd.all_gather %a over @mesh ["dp"] dims = [0] instance = 1 names = ["a"] reason = "" : tensor<4xf32> -> tensor<12xf32>
  return
}

// -----

nd.mesh @mesh axes [#nd.axis<"dp" = 2, replicate>]
func.func @scattered_size(%a: tensor<5xf32>) {
  // expected-error @+1 {{expected operand of shape [4] but found [5]}}
  %0 = nd.reduce_scatter sum %a over @mesh ["dp"] dims = [0] instance = 1 names = ["a"] reason = "" : tensor<5xf32> -> tensor<2xf32>
  return
}

// -----

nd.mesh @mesh axes [#nd.axis<"dp" = 2, replicate>]
func.func @dim(%a: tensor<4xf32>) {
  // expected-error @+1 {{expected dim in [0, 1) but found 1}}
  %0 = nd.all_gather %a over @mesh ["dp"] dims = [1] instance = 1 names = ["a"] reason = "" : tensor<4xf32> -> tensor<8xf32>
  return
}

// -----

nd.mesh @mesh axes [#nd.axis<"dp" = 2, replicate>]
func.func @dims(%a: tensor<4x8xf32>) {
  // expected-error @+1 {{expected one dimension per operand but found 2 for 1}}
  %0 = nd.all_gather %a over @mesh ["dp"] dims = [0, 1] instance = 1 names = ["a"] reason = "" : tensor<4x8xf32> -> tensor<8x8xf32>
  return
}

// -----

nd.mesh @mesh axes [#nd.axis<"dp" = 2, replicate>]
func.func @results(%a: tensor<4x8xf32>) {
  // expected-error @+1 {{expected one result per operand but found 1 for 2}}
  %0 = nd.all_gather %a, %a over @mesh ["dp"] dims = [0, 0] instance = 1 names = ["a", "b"] reason = "" : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<8x8xf32>
  return
}

// -----

nd.mesh @mesh axes [#nd.axis<"dp" = 2, replicate>]
func.func @exchange_parts(%a: tensor<5x8xf32>) {
  // expected-error @+1 {{cuts dimension 0 of size 5 into 2 parts}}
  %0 = nd.all_to_all %a over @mesh ["dp"] split_dim = 0 concat_dim = 1 instance = 1 name = "a" reason = "" : tensor<5x8xf32> -> tensor<2x16xf32>
  return
}

// -----

nd.mesh @mesh axes [#nd.axis<"dp" = 2, replicate>]
func.func @exchange_dims(%a: tensor<4x8xf32>) {
  // expected-error @+1 {{split_dim and concat_dim are both 1; use nd.permute to move shards of one dimension}}
  %0 = nd.all_to_all %a over @mesh ["dp"] split_dim = 1 concat_dim = 1 instance = 1 name = "a" reason = "" : tensor<4x8xf32> -> tensor<4x8xf32>
  return
}

// -----

nd.mesh @mesh axes [#nd.axis<"dp" = 2, replicate>]
func.func @exchange_shape(%a: tensor<4x8xf32>) {
  // expected-error @+1 {{expected result of shape [2, 16] but found [4, 8]}}
  %0 = nd.all_to_all %a over @mesh ["dp"] split_dim = 0 concat_dim = 1 instance = 1 name = "a" reason = "" : tensor<4x8xf32> -> tensor<4x8xf32>
  return
}

// -----

nd.mesh @mesh axes [#nd.axis<"dp" = 2, replicate>]
func.func @few_sources(%a: tensor<4x8xf32>) {
  // expected-error @+1 {{expected one source for each of 2 positions but found 1}}
  %0 = nd.permute %a over @mesh ["dp"] sources = [0] instance = 1 name = "a" reason = "" : tensor<4x8xf32>
  return
}

// -----

nd.mesh @mesh axes [#nd.axis<"dp" = 2, replicate>]
func.func @strange_source(%a: tensor<4x8xf32>) {
  // expected-error @+1 {{expected sources in [0, 2) but found 2}}
  %0 = nd.permute %a over @mesh ["dp"] sources = [1, 2] instance = 1 name = "a" reason = "" : tensor<4x8xf32>
  return
}

// -----

nd.mesh @mesh axes [#nd.axis<"dp" = 2, replicate>]
func.func @source_twice(%a: tensor<4x8xf32>) {
  // expected-error @+1 {{sends position 1 twice; sources are a permutation}}
  %0 = nd.permute %a over @mesh ["dp"] sources = [1, 1] instance = 1 name = "a" reason = "" : tensor<4x8xf32>
  return
}

// -----

nd.mesh @mesh axes [#nd.axis<"dp" = 2, replicate>]
func.func @half_a_permute(%a: tensor<4x8xf32>) {
  // expected-error @+1 {{expected both shardings, before and after, or none}}
  %0 = nd.permute %a over @mesh ["dp"] sources = [1, 0] before = <@mesh, [{"dp"}, {}]> instance = 1 name = "a" reason = "" : tensor<4x8xf32>
  return
}

// -----

nd.mesh @mesh axes [#nd.axis<"dp" = 2, replicate>]
func.func @slice_shape(%a: tensor<4x8xf32>) {
  // expected-error @+1 {{expected operand of shape [8, 8] but found [4, 8]}}
  %0 = nd.all_slice %a over @mesh ["dp"] dim = 0 instance = 1 name = "a" reason = "" : tensor<4x8xf32> -> tensor<4x8xf32>
  return
}
