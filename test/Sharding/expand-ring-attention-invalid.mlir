// RUN: nd-opt %s -nd-expand-ring-attention -split-input-file -verify-diagnostics

nd.mesh @mesh axes [#nd.axis<"cp" = 3, context>]
!x = tensor<2x4x8x4xf32>
func.func @shards(%q: !x) -> !x {
  // expected-error @below {{has keys that go around the 3 ranks of its seq_axes, but key_shards is 2}}
  %o, %lse = nd.attention %q, %q, %q scale = 0.5 {cp_mode = "ring", seq_axes = ["cp"], key_shards = 2 : i64} : !x, !x, !x -> !x, tensor<2x4x8xf32>
  return %o : !x
}

// -----

nd.mesh @mesh axes [#nd.axis<"cp" = 2, context>]
!x = tensor<2x4x8x4xf32>
func.func @axis(%q: !x) -> !x {
  // expected-error @below {{has keys that go around mesh axis "sp", which the mesh lacks}}
  %o, %lse = nd.attention %q, %q, %q scale = 0.5 {cp_mode = "ring", seq_axes = ["sp"], key_shards = 2 : i64} : !x, !x, !x -> !x, tensor<2x4x8xf32>
  return %o : !x
}
