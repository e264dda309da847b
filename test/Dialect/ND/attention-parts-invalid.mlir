// RUN: nd-opt %s -split-input-file -verify-diagnostics

!x = tensor<2x4x8x4xf32>
func.func @order_repeats(%q: !x) {
  // expected-error @below {{expected order to be a permutation of [0, 4) but found [0, 3, 3, 2]}}
  %0:2 = nd.attention %q, %q, %q scale = 1.0 {order = array<i64: 0, 3, 3, 2>} : !x, !x, !x -> !x, tensor<2x4x8xf32>
  return
}

// -----

!x = tensor<2x4x8x4xf32>
func.func @order_does_not_divide(%q: !x) {
  // expected-error @below {{order has 3 chunks, which do not divide the sequence of length 8}}
  %0:2 = nd.attention %q, %q, %q scale = 1.0 {order = array<i64: 0, 2, 1>} : !x, !x, !x -> !x, tensor<2x4x8xf32>
  return
}

// -----

!x = tensor<2x4x8x4xf32>
func.func @valid_too_large(%q: !x) {
  // expected-error @below {{expected valid in [0, 8], the length of the sequence, but found 9}}
  %0:2 = nd.attention %q, %q, %q scale = 1.0 {valid = 9 : i64} : !x, !x, !x -> !x, tensor<2x4x8xf32>
  return
}

// -----

!x = tensor<2x4x8x4xf32>
func.func @map_too_short(%q: !x) {
  // expected-error @below {{expected kv_map to have an entry for each of the query heads, 4, but found 3}}
  %0:2 = nd.attention %q, %q, %q scale = 1.0 {kv_map = array<i64: 0, 1, 2>} : !x, !x, !x -> !x, tensor<2x4x8xf32>
  return
}

// -----

!x = tensor<2x4x8x4xf32>
func.func @map_out_of_range(%q: !x) {
  // expected-error @below {{kv_map gives query head 2 the key head 4, but it has to be in [0, 4), or -1 for a padding head}}
  %0:2 = nd.attention %q, %q, %q scale = 1.0 {kv_map = array<i64: 0, 1, 4, -1>} : !x, !x, !x -> !x, tensor<2x4x8xf32>
  return
}

// -----

!x = tensor<2x4x8x4xf32>
func.func @unknown_mode(%q: !x) {
  // expected-error @below {{expected cp_mode "gather", "ring" or "ulysses" but found "star"}}
  %0:2 = nd.attention %q, %q, %q scale = 1.0 {cp_mode = "star"} : !x, !x, !x -> !x, tensor<2x4x8xf32>
  return
}

// -----

!x = tensor<2x4x8x4xf32>
func.func @shards_of_what(%q: !x) {
  // expected-error @below {{has keys in shards (key_shards), but no seq_axes that say along which mesh axes}}
  %0:2 = nd.attention %q, %q, %q scale = 1.0 {key_shards = 2 : i64} : !x, !x, !x -> !x, tensor<2x4x8xf32>
  return
}

// -----

!x = tensor<2x4x8x4xf32>
func.func @step_beyond_the_ring(%q: !x) {
  // expected-error @below {{expected ring_step in [0, 2), as keys come in 2 shards, but found 2}}
  %0:2 = nd.attention %q, %q, %q scale = 1.0 {seq_axes = ["cp"], key_shards = 2 : i64, ring_step = 2 : i64} : !x, !x, !x -> !x, tensor<2x4x8xf32>
  return
}

// -----

!q = tensor<2x4x8x4xf32>
!k = tensor<2x4x6x4xf32>
func.func @ring_of_other_keys(%q: !q, %k: !k) {
  // expected-error @below {{expected as many queries as keys when keys go around in a ring but found 8 and 6}}
  %0:2 = nd.attention %q, %k, %k scale = 1.0 {cp_mode = "ring"} : !q, !k, !k -> !q, tensor<2x4x8xf32>
  return
}

// -----

!x = tensor<2x4x8x4xf32>
func.func @documents_of_a_shard(%q: !x, %d: tensor<2x8xi64>) {
  // expected-error @below {{expected documents of shape [2, 16] but found [2, 8]}}
  %0:2 = nd.attention %q, %q, %q documents(%d : tensor<2x8xi64>) scale = 1.0 {seq_axes = ["cp"], key_shards = 2 : i64} : !x, !x, !x -> !x, tensor<2x4x8xf32>
  return
}

// -----

!x = tensor<2x4x8x4xf32>
func.func @carry_of_other_queries(%q: !x, %o: tensor<2x4x4x4xf32>, %l: tensor<2x4x4xf32>) {
  // expected-error @below {{expected carry's result of shape [2, 4, 8, 4] but found [2, 4, 4, 4]}}
  %0:2 = nd.attention %q, %q, %q carry(%o, %l : tensor<2x4x4x4xf32>, tensor<2x4x4xf32>) scale = 1.0 : !x, !x, !x -> !x, tensor<2x4x8xf32>
  return
}

// -----

!x = tensor<2x4x8x4xbf16>
func.func @gradients_of_keys_are_sums(%q: !x, %l: tensor<2x4x8xf32>) {
  // expected-error @below {{expected key_grad of the element type of key in f32, 'f32', but found 'bf16'}}
  %0:3 = nd.attention_grad %q, %q, %q result(%q, %l, %q) scale = 1.0 : !x, !x, !x, !x, tensor<2x4x8xf32>, !x -> !x, !x, tensor<2x4x8x4xf32>
  return
}
