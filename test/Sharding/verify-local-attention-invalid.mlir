// RUN: nd-opt %s -nd-verify-sharding -split-input-file -verify-diagnostics

nd.mesh @mesh axes [#nd.axis<"cp" = 2, context>]
!x = tensor<1x2x8x4xf32>
func.func @places_of_others(%q: !x {nd.kind = "input", nd.name = "q", nd.sharding = #nd.sharding<@mesh, [{}, {}, {"cp"}, {}]>, nd.global_shape = array<i64: 1, 2, 16, 4>},
                            %k: tensor<1x2x16x4xf32> {nd.kind = "input", nd.name = "k", nd.sharding = #nd.sharding<@mesh, [{}, {}, {}, {}]>, nd.global_shape = array<i64: 1, 2, 16, 4>})
    -> (!x {nd.kind = "output", nd.name = "o", nd.sharding = #nd.sharding<@mesh, [{}, {}, {"cp"}, {}]>, nd.global_shape = array<i64: 1, 2, 16, 4>}) {
  // expected-error @below {{along cp: the query is sharded in dimension 2, but seq_axes does not name the axis: queries would take places that are not theirs}}
  %o, %lse = nd.attention %q, %k, %k scale = 1.0 causal : !x, tensor<1x2x16x4xf32>, tensor<1x2x16x4xf32> -> !x, tensor<1x2x8xf32>
  return %o : !x
}

// -----

nd.mesh @mesh axes [#nd.axis<"cp" = 2, context>]
!x = tensor<1x2x8x4xf32>
func.func @keys_that_did_not_move(%q: !x {nd.kind = "input", nd.name = "q", nd.sharding = #nd.sharding<@mesh, [{}, {}, {"cp"}, {}]>, nd.global_shape = array<i64: 1, 2, 16, 4>})
    -> (!x {nd.kind = "output", nd.name = "o", nd.sharding = #nd.sharding<@mesh, [{}, {}, {"cp"}, {}]>, nd.global_shape = array<i64: 1, 2, 16, 4>}) {
  %o, %l = nd.attention %q, %q, %q scale = 1.0 causal {seq_axes = ["cp"], key_shards = 2 : i64} : !x, !x, !x -> !x, tensor<1x2x8xf32>
  // expected-error @below {{operand 1 of 'nd.attention' is sharded in dimension 2, but has to be sharded in dimension 2, each rank with the shard of the one 1 before it at step 1 of the ring}}
  %o1, %l1 = nd.attention %q, %q, %q carry(%o, %l : !x, tensor<1x2x8xf32>) scale = 1.0 causal {seq_axes = ["cp"], key_shards = 2 : i64, ring_step = 1 : i64} : !x, !x, !x -> !x, tensor<1x2x8xf32>
  return %o1 : !x
}

// -----

nd.mesh @mesh axes [#nd.axis<"cp" = 2, context>]
!x = tensor<1x2x8x4xf32>
func.func @a_step_is_missing(%q: !x {nd.kind = "input", nd.name = "q", nd.sharding = #nd.sharding<@mesh, [{}, {}, {"cp"}, {}]>, nd.global_shape = array<i64: 1, 2, 16, 4>})
    -> (!x {nd.kind = "output", nd.name = "o", nd.sharding = #nd.sharding<@mesh, [{}, {}, {"cp"}, {}]>, nd.global_shape = array<i64: 1, 2, 16, 4>}) {
  // expected-error @below {{merges the ring's steps [0], but its queries see keys of the steps [0, 1]}}
  %o, %l = nd.attention %q, %q, %q scale = 1.0 causal {seq_axes = ["cp"], key_shards = 2 : i64} : !x, !x, !x -> !x, tensor<1x2x8xf32>
  return %o : !x
}

// -----

nd.mesh @mesh axes [#nd.axis<"cp" = 2, context>]
!x = tensor<1x2x8x4xf32>
!l = tensor<1x2x8xf32>
func.func @a_gradient_twice(%q: !x {nd.kind = "input", nd.name = "q", nd.sharding = #nd.sharding<@mesh, [{}, {}, {"cp"}, {}]>, nd.global_shape = array<i64: 1, 2, 16, 4>},
                            %l: !l {nd.kind = "input", nd.name = "l", nd.sharding = #nd.sharding<@mesh, [{}, {}, {"cp"}]>, nd.global_shape = array<i64: 1, 2, 16>})
    -> (!x {nd.kind = "output", nd.name = "o", nd.sharding = #nd.sharding<@mesh, [{}, {}, {"cp"}, {}]>, nd.global_shape = array<i64: 1, 2, 16, 4>}) {
  // expected-error @below {{has gradients of the ring's steps [0, 0], but its queries see keys of the steps [0, 1]}}
  %g:3 = nd.attention_grad %q, %q, %q result(%q, %l, %q) scale = 1.0 causal {seq_axes = ["cp"], key_shards = 2 : i64} : !x, !x, !x, !x, !l, !x -> !x, !x, !x
  %h:3 = nd.attention_grad %q, %q, %q result(%q, %l, %q) scale = 1.0 causal {seq_axes = ["cp"], key_shards = 2 : i64} : !x, !x, !x, !x, !l, !x -> !x, !x, !x
  %0 = arith.addf %g#0, %h#0 : !x
  return %0 : !x
}
