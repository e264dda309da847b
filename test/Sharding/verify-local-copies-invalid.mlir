// RUN: nd-opt %s -nd-verify-sharding -split-input-file -verify-diagnostics

// Two heads of two rows on three ranks of two slots: the first, both, the second.
#copies = {dim = 0, unit = 2, table = [[0, -1], [0, 1], [-1, 1]]}
#stored = #nd.sharding<@mesh, [{"tp"}, {}]>
#heads = #nd.sharding<@mesh, [{}, {"tp"}, {}, {}]>
nd.mesh @mesh axes [#nd.axis<"tp" = 3, tensor>]
!w = tensor<4x5xf32>
!x = tensor<2x3x5xf32>
!q = tensor<2x2x3x2xf32>
func.func @right(%w: !w {nd.sharding = #stored, nd.global_shape = array<i64: 4, 5>, nd.copies = #copies}, %x: !x {nd.sharding = #nd.sharding<@mesh, [{}, {}, {}]>, nd.global_shape = array<i64: 2, 3, 5>}, %q: !q {nd.sharding = #heads, nd.global_shape = array<i64: 2, 6, 3, 2>},
    %l: tensor<2x2x3xf32> {nd.sharding = #nd.sharding<@mesh, [{}, {"tp"}, {}]>, nd.global_shape = array<i64: 2, 6, 3>})
    -> (!w {nd.sharding = #stored, nd.global_shape = array<i64: 4, 5>, nd.copies = #copies}) {
  // Keys by the copies, and what their own queries add to the gradient.
  %0 = nd.dot_general %x, %w contract = [2] x [1] : !x, !w -> tensor<2x3x4xf32>
  %1 = nd.reshape %0 : tensor<2x3x4xf32> -> tensor<2x3x2x2xf32>
  %k = nd.transpose %1 permutation = [0, 2, 1, 3] : tensor<2x3x2x2xf32> -> !q
  %d:3 = nd.attention_grad %q, %k, %k result(%q, %l, %q) scale = 1.0
      {kv_map = array<i64: 0, 0, 2, 3, 5, 5>, head_axes = ["tp"]} : !q, !q, !q, !q, tensor<2x2x3xf32>, !q -> !q, !q, !q
  %2 = nd.transpose %d#1 permutation = [0, 2, 1, 3] : !q -> tensor<2x3x2x2xf32>
  %3 = nd.reshape %2 : tensor<2x3x2x2xf32> -> tensor<2x3x4xf32>
  %g = nd.dot_general %3, %x contract = [0, 1] x [0, 1] : tensor<2x3x4xf32>, !x -> !w
  %s = nd.sum_copies %g dim = 0 unit = 2 units = 1 groups = [0, -1, 0, 1, -1, 1] {shard_axes = ["tp"]} : !w -> tensor<2x2x5xf32>
  %r = nd.all_reduce sum %s over @mesh ["tp"] instance = 1 names = ["g"] reason = "" : tensor<2x2x5xf32>
  %m = nd.make_copies %r dim = 0 unit = 2 units = 1 groups = [0, -1, 0, 1, -1, 1] {shard_axes = ["tp"]} : tensor<2x2x5xf32> -> !w
  return %m : !w
}

// -----

#copies = {dim = 0, unit = 2, table = [[0, -1], [0, 1], [-1, 1]]}
#stored = #nd.sharding<@mesh, [{"tp"}, {}]>
#heads = #nd.sharding<@mesh, [{}, {"tp"}, {}, {}]>
nd.mesh @mesh axes [#nd.axis<"tp" = 3, tensor>]
!w = tensor<4x5xf32>
!x = tensor<2x3x5xf32>
!q = tensor<2x2x3x2xf32>
func.func @not_summed(%w: !w {nd.sharding = #stored, nd.global_shape = array<i64: 4, 5>, nd.copies = #copies}, %x: !x {nd.sharding = #nd.sharding<@mesh, [{}, {}, {}]>, nd.global_shape = array<i64: 2, 3, 5>}, %q: !q {nd.sharding = #heads, nd.global_shape = array<i64: 2, 6, 3, 2>},
    %l: tensor<2x2x3xf32> {nd.sharding = #nd.sharding<@mesh, [{}, {"tp"}, {}]>, nd.global_shape = array<i64: 2, 6, 3>})
    -> (!w {nd.sharding = #stored, nd.global_shape = array<i64: 4, 5>, nd.copies = #copies}) {
  // Keys by the copies, and what their own queries add to the gradient.
  %0 = nd.dot_general %x, %w contract = [2] x [1] : !x, !w -> tensor<2x3x4xf32>
  %1 = nd.reshape %0 : tensor<2x3x4xf32> -> tensor<2x3x2x2xf32>
  %k = nd.transpose %1 permutation = [0, 2, 1, 3] : tensor<2x3x2x2xf32> -> !q
  %d:3 = nd.attention_grad %q, %k, %k result(%q, %l, %q) scale = 1.0
      {kv_map = array<i64: 0, 0, 2, 3, 5, 5>, head_axes = ["tp"]} : !q, !q, !q, !q, tensor<2x2x3xf32>, !q -> !q, !q, !q
  %2 = nd.transpose %d#1 permutation = [0, 2, 1, 3] : !q -> tensor<2x3x2x2xf32>
  %3 = nd.reshape %2 : tensor<2x3x2x2xf32> -> tensor<2x3x4xf32>
  %g = nd.dot_general %3, %x contract = [0, 1] x [0, 1] : tensor<2x3x4xf32>, !x -> !w
  %s = nd.sum_copies %g dim = 0 unit = 2 units = 1 groups = [0, -1, 0, 1, -1, 1] {shard_axes = ["tp"]} : !w -> tensor<2x2x5xf32>
  // expected-error @below {{along tp: hands out a tensor that is a partial sum: copies would not be whole}}
  %m = nd.make_copies %s dim = 0 unit = 2 units = 1 groups = [0, -1, 0, 1, -1, 1] {shard_axes = ["tp"]} : tensor<2x2x5xf32> -> !w
  return %m : !w
}

// -----

// Each holder would be updated by its own part.
#copies = {dim = 0, unit = 2, table = [[0, -1], [0, 1], [-1, 1]]}
#stored = #nd.sharding<@mesh, [{"tp"}, {}]>
#heads = #nd.sharding<@mesh, [{}, {"tp"}, {}, {}]>
nd.mesh @mesh axes [#nd.axis<"tp" = 3, tensor>]
!w = tensor<4x5xf32>
!x = tensor<2x3x5xf32>
!q = tensor<2x2x3x2xf32>
func.func @past_the_sum(%w: !w {nd.sharding = #stored, nd.global_shape = array<i64: 4, 5>, nd.copies = #copies}, %x: !x {nd.sharding = #nd.sharding<@mesh, [{}, {}, {}]>, nd.global_shape = array<i64: 2, 3, 5>}, %q: !q {nd.sharding = #heads, nd.global_shape = array<i64: 2, 6, 3, 2>},
    %l: tensor<2x2x3xf32> {nd.sharding = #nd.sharding<@mesh, [{}, {"tp"}, {}]>, nd.global_shape = array<i64: 2, 6, 3>})
    -> (!w {nd.sharding = #stored, nd.global_shape = array<i64: 4, 5>, nd.copies = #copies}) {
  // Keys by the copies, and what their own queries add to the gradient.
  %0 = nd.dot_general %x, %w contract = [2] x [1] : !x, !w -> tensor<2x3x4xf32>
  %1 = nd.reshape %0 : tensor<2x3x4xf32> -> tensor<2x3x2x2xf32>
  %k = nd.transpose %1 permutation = [0, 2, 1, 3] : tensor<2x3x2x2xf32> -> !q
  %d:3 = nd.attention_grad %q, %k, %k result(%q, %l, %q) scale = 1.0
      {kv_map = array<i64: 0, 0, 2, 3, 5, 5>, head_axes = ["tp"]} : !q, !q, !q, !q, tensor<2x2x3xf32>, !q -> !q, !q, !q
  %2 = nd.transpose %d#1 permutation = [0, 2, 1, 3] : !q -> tensor<2x3x2x2xf32>
  %3 = nd.reshape %2 : tensor<2x3x2x2xf32> -> tensor<2x3x4xf32>
  %g = nd.dot_general %3, %x contract = [0, 1] x [0, 1] : tensor<2x3x4xf32>, !x -> !w
  // expected-error @below {{along tp: 'arith.addf' needs the sum over all parts of operand 1, which is sharded in dimension 0, some shards parts of one sum}}
  %m = arith.addf %w, %g : !w
  return %m : !w
}

// -----

#copies = {dim = 0, unit = 2, table = [[0, -1], [0, 1], [-1, 1]]}
#stored = #nd.sharding<@mesh, [{"tp"}, {}]>
#heads = #nd.sharding<@mesh, [{}, {"tp"}, {}, {}]>
nd.mesh @mesh axes [#nd.axis<"tp" = 3, tensor>]
!w = tensor<4x5xf32>
!x = tensor<2x3x5xf32>
!q = tensor<2x2x3x2xf32>
func.func @returned_before(%w: !w {nd.sharding = #stored, nd.global_shape = array<i64: 4, 5>, nd.copies = #copies}, %x: !x {nd.sharding = #nd.sharding<@mesh, [{}, {}, {}]>, nd.global_shape = array<i64: 2, 3, 5>}, %q: !q {nd.sharding = #heads, nd.global_shape = array<i64: 2, 6, 3, 2>},
    %l: tensor<2x2x3xf32> {nd.sharding = #nd.sharding<@mesh, [{}, {"tp"}, {}]>, nd.global_shape = array<i64: 2, 6, 3>})
    -> (!w {nd.sharding = #stored, nd.global_shape = array<i64: 4, 5>, nd.copies = #copies}) {
  // Keys by the copies, and what their own queries add to the gradient.
  %0 = nd.dot_general %x, %w contract = [2] x [1] : !x, !w -> tensor<2x3x4xf32>
  %1 = nd.reshape %0 : tensor<2x3x4xf32> -> tensor<2x3x2x2xf32>
  %k = nd.transpose %1 permutation = [0, 2, 1, 3] : tensor<2x3x2x2xf32> -> !q
  %d:3 = nd.attention_grad %q, %k, %k result(%q, %l, %q) scale = 1.0
      {kv_map = array<i64: 0, 0, 2, 3, 5, 5>, head_axes = ["tp"]} : !q, !q, !q, !q, tensor<2x2x3xf32>, !q -> !q, !q, !q
  %2 = nd.transpose %d#1 permutation = [0, 2, 1, 3] : !q -> tensor<2x3x2x2xf32>
  %3 = nd.reshape %2 : tensor<2x3x2x2xf32> -> tensor<2x3x4xf32>
  %g = nd.dot_general %3, %x contract = [0, 1] x [0, 1] : tensor<2x3x4xf32>, !x -> !w
  // expected-error @below {{along tp: result 0 is sharded in dimension 0, some shards parts of one sum, but by nd.copies it has to be sharded in dimension 0, some shards copies of others}}
  return %g : !w
}

// -----

#copies = {dim = 0, unit = 2, table = [[0, -1], [0, 1], [-1, 1]]}
#stored = #nd.sharding<@mesh, [{"tp"}, {}]>
#heads = #nd.sharding<@mesh, [{}, {"tp"}, {}, {}]>
nd.mesh @mesh axes [#nd.axis<"tp" = 3, tensor>]
!w = tensor<4x5xf32>
!x = tensor<2x3x5xf32>
!q = tensor<2x2x3x2xf32>
func.func @of_another_table(%w: !w {nd.sharding = #stored, nd.global_shape = array<i64: 4, 5>, nd.copies = #copies}, %x: !x {nd.sharding = #nd.sharding<@mesh, [{}, {}, {}]>, nd.global_shape = array<i64: 2, 3, 5>}, %q: !q {nd.sharding = #heads, nd.global_shape = array<i64: 2, 6, 3, 2>},
    %l: tensor<2x2x3xf32> {nd.sharding = #nd.sharding<@mesh, [{}, {"tp"}, {}]>, nd.global_shape = array<i64: 2, 6, 3>})
    -> (!w {nd.sharding = #stored, nd.global_shape = array<i64: 4, 5>, nd.copies = #copies}) {
  // Keys by the copies, and what their own queries add to the gradient.
  %0 = nd.dot_general %x, %w contract = [2] x [1] : !x, !w -> tensor<2x3x4xf32>
  %1 = nd.reshape %0 : tensor<2x3x4xf32> -> tensor<2x3x2x2xf32>
  %k = nd.transpose %1 permutation = [0, 2, 1, 3] : tensor<2x3x2x2xf32> -> !q
  %d:3 = nd.attention_grad %q, %k, %k result(%q, %l, %q) scale = 1.0
      {kv_map = array<i64: 0, 0, 2, 3, 5, 5>, head_axes = ["tp"]} : !q, !q, !q, !q, tensor<2x2x3xf32>, !q -> !q, !q, !q
  %2 = nd.transpose %d#1 permutation = [0, 2, 1, 3] : !q -> tensor<2x3x2x2xf32>
  %3 = nd.reshape %2 : tensor<2x3x2x2xf32> -> tensor<2x3x4xf32>
  %g = nd.dot_general %3, %x contract = [0, 1] x [0, 1] : tensor<2x3x4xf32>, !x -> !w
  // expected-error @below {{sums shards by groups that are not those of nd.copies}}
  %s = nd.sum_copies %g dim = 0 unit = 2 units = 1 groups = [0, -1, 1, 0, -1, 1] {shard_axes = ["tp"]} : !w -> tensor<2x2x5xf32>
  %r = nd.all_reduce sum %s over @mesh ["tp"] instance = 1 names = ["g"] reason = "" : tensor<2x2x5xf32>
  %m = nd.make_copies %r dim = 0 unit = 2 units = 1 groups = [0, -1, 1, 0, -1, 1] {shard_axes = ["tp"]} : tensor<2x2x5xf32> -> !w
  return %m : !w
}

// -----

#copies = {dim = 0, unit = 2, table = [[0, -1], [0, 1], [-1, 1]]}
#stored = #nd.sharding<@mesh, [{"tp"}, {}]>
#heads = #nd.sharding<@mesh, [{}, {"tp"}, {}, {}]>
nd.mesh @mesh axes [#nd.axis<"tp" = 3, tensor>]
!w = tensor<4x5xf32>
!x = tensor<2x3x5xf32>
!q = tensor<2x2x3x2xf32>
func.func @handed_out_otherwise(%w: !w {nd.sharding = #stored, nd.global_shape = array<i64: 4, 5>, nd.copies = #copies}, %x: !x {nd.sharding = #nd.sharding<@mesh, [{}, {}, {}]>, nd.global_shape = array<i64: 2, 3, 5>}, %q: !q {nd.sharding = #heads, nd.global_shape = array<i64: 2, 6, 3, 2>},
    %l: tensor<2x2x3xf32> {nd.sharding = #nd.sharding<@mesh, [{}, {"tp"}, {}]>, nd.global_shape = array<i64: 2, 6, 3>})
    -> (!w {nd.sharding = #stored, nd.global_shape = array<i64: 4, 5>, nd.copies = #copies}) {
  // Keys by the copies, and what their own queries add to the gradient.
  %0 = nd.dot_general %x, %w contract = [2] x [1] : !x, !w -> tensor<2x3x4xf32>
  %1 = nd.reshape %0 : tensor<2x3x4xf32> -> tensor<2x3x2x2xf32>
  %k = nd.transpose %1 permutation = [0, 2, 1, 3] : tensor<2x3x2x2xf32> -> !q
  %d:3 = nd.attention_grad %q, %k, %k result(%q, %l, %q) scale = 1.0
      {kv_map = array<i64: 0, 0, 2, 3, 5, 5>, head_axes = ["tp"]} : !q, !q, !q, !q, tensor<2x2x3xf32>, !q -> !q, !q, !q
  %2 = nd.transpose %d#1 permutation = [0, 2, 1, 3] : !q -> tensor<2x3x2x2xf32>
  %3 = nd.reshape %2 : tensor<2x3x2x2xf32> -> tensor<2x3x4xf32>
  %g = nd.dot_general %3, %x contract = [0, 1] x [0, 1] : tensor<2x3x4xf32>, !x -> !w
  %s = nd.sum_copies %g dim = 0 unit = 2 units = 1 groups = [0, -1, 0, 1, -1, 1] {shard_axes = ["tp"]} : !w -> tensor<2x2x5xf32>
  %r = nd.all_reduce sum %s over @mesh ["tp"] instance = 1 names = ["g"] reason = "" : tensor<2x2x5xf32>
  // expected-error @below {{along tp: hands out what nd.sum_copies of the same groups has not summed}}
  %m = nd.make_copies %r dim = 0 unit = 2 units = 1 groups = [1, -1, 1, 0, -1, 0] {shard_axes = ["tp"]} : tensor<2x2x5xf32> -> !w
  return %m : !w
}

// -----

#copies = {dim = 0, unit = 2, table = [[0, -1], [0, 1], [-1, 1]]}
#stored = #nd.sharding<@mesh, [{"tp"}, {}]>
#heads = #nd.sharding<@mesh, [{}, {"tp"}, {}, {}]>
nd.mesh @mesh axes [#nd.axis<"tp" = 3, tensor>]
!w = tensor<4x5xf32>
!x = tensor<2x3x5xf32>
!q = tensor<2x2x3x2xf32>
func.func @sums_copies(%w: !w {nd.sharding = #stored, nd.global_shape = array<i64: 4, 5>, nd.copies = #copies}) {
  // expected-error @below {{along tp: sums copies of a tensor that is sharded in dimension 0, some shards copies of others, but has to be sharded in dimension 0, no shard a copy of another}}
  %s = nd.sum_copies %w dim = 0 unit = 2 units = 1 groups = [0, -1, 0, 1, -1, 1] {shard_axes = ["tp"]} : !w -> tensor<2x2x5xf32>
  return
}

// -----

// The norm would count each head as often as it lies on ranks.
#copies = {dim = 0, unit = 2, table = [[0, -1], [0, 1], [-1, 1]]}
#stored = #nd.sharding<@mesh, [{"tp"}, {}]>
#heads = #nd.sharding<@mesh, [{}, {"tp"}, {}, {}]>
nd.mesh @mesh axes [#nd.axis<"tp" = 3, tensor>]
!w = tensor<4x5xf32>
!x = tensor<2x3x5xf32>
!q = tensor<2x2x3x2xf32>
func.func @counts_copies(%w: !w {nd.sharding = #stored, nd.global_shape = array<i64: 4, 5>, nd.copies = #copies}) {
  %0 = arith.mulf %w, %w : !w
  // expected-error @below {{along tp: 'nd.reduce' adds up operand 0, which is sharded in dimension 0, some shards copies of others: what several ranks hold would count several times}}
  %1 = nd.reduce sum %0 dims = [0, 1] : !w -> tensor<f32>
  return
}

// -----

#copies = {dim = 0, unit = 2, table = [[0, -1], [0, 1], [-1, 1]]}
#stored = #nd.sharding<@mesh, [{"tp"}, {}]>
#heads = #nd.sharding<@mesh, [{}, {"tp"}, {}, {}]>
nd.mesh @mesh axes [#nd.axis<"tp" = 3, tensor>]
!w = tensor<4x5xf32>
!x = tensor<2x3x5xf32>
!q = tensor<2x2x3x2xf32>
func.func @joins_other_shards(%w: !w {nd.sharding = #stored, nd.global_shape = array<i64: 4, 5>, nd.copies = #copies}, %v: !w {nd.sharding = #stored, nd.global_shape = array<i64: 12, 5>}) {
  // expected-error @below {{along tp: 'arith.addf' joins operand 0, which is sharded in dimension 0, some shards copies of others, with operand 1, which is sharded in dimension 0: no rank has the part of it that belongs to its copies}}
  %0 = arith.addf %w, %v : !w
  return
}

// -----

#copies = {dim = 0, unit = 2, table = [[0, -1], [0, 1], [-1, 1]]}
#stored = #nd.sharding<@mesh, [{"tp"}, {}]>
#heads = #nd.sharding<@mesh, [{}, {"tp"}, {}, {}]>
nd.mesh @mesh axes [#nd.axis<"tp" = 3, tensor>]
!w = tensor<4x5xf32>
!x = tensor<2x3x5xf32>
!q = tensor<2x2x3x2xf32>
func.func @said_to_be_shards(%w: !w {nd.sharding = #stored, nd.global_shape = array<i64: 4, 5>, nd.copies = #copies})
    -> (!w {nd.sharding = #stored, nd.global_shape = array<i64: 12, 5>}) {
  // expected-error @below {{along tp: result 0 is sharded in dimension 0, some shards copies of others, but by nd.copies it has to be sharded in dimension 0}}
  return %w : !w
}

// -----

#copies = {dim = 0, unit = 2, table = [[0, -1], [0, 1], [-1, 1]]}
#stored = #nd.sharding<@mesh, [{"tp"}, {}]>
#heads = #nd.sharding<@mesh, [{}, {"tp"}, {}, {}]>
nd.mesh @mesh axes [#nd.axis<"tp" = 3, tensor>]
!w = tensor<4x5xf32>
!x = tensor<2x3x5xf32>
!q = tensor<2x2x3x2xf32>
func.func @returned_by_another_table(%w: !w {nd.sharding = #stored, nd.global_shape = array<i64: 4, 5>, nd.copies = #copies})
    -> (!w {nd.sharding = #stored, nd.global_shape = array<i64: 4, 5>, nd.copies = {dim = 0, unit = 2, table = [[0, -1], [1, 0], [-1, 1]]}}) {
  // expected-error @below {{by another table}}
  return %w : !w
}

// -----

#copies = {dim = 0, unit = 2, table = [[0, -1], [0, 1], [-1, 1]]}
#stored = #nd.sharding<@mesh, [{"tp"}, {}]>
#heads = #nd.sharding<@mesh, [{}, {"tp"}, {}, {}]>
nd.mesh @mesh axes [#nd.axis<"tp" = 3, tensor>]
!w = tensor<4x5xf32>
!x = tensor<2x3x5xf32>
!q = tensor<2x2x3x2xf32>
// expected-error @below {{nd.copies of argument 0 is {dim = 0 : i64}; expected}}
func.func @no_table(%w: !w {nd.sharding = #stored, nd.global_shape = array<i64: 4, 5>, nd.copies = {dim = 0}}) {
  return
}
