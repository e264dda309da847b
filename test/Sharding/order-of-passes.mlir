// RUN: nd-opt %s -nd-insert-reshards -split-input-file -verify-diagnostics

nd.mesh @mesh axes [#nd.axis<"dp" = 2, replicate>]
// expected-error @+1 {{argument 0 has no nd.sharding; run nd-annotate first}}
func.func @not_annotated(%a: tensor<4xf32>) {
  return
}

// -----

nd.mesh @mesh axes [#nd.axis<"dp" = 2, replicate>]
func.func @not_propagated(%a: tensor<4xf32> {nd.sharding = #nd.sharding<@mesh, [{"dp"}]>}) {
  // expected-error @+1 {{'arith.negf' has no nd.factor_axes for the factors of its rule; run nd-propagate-sharding first, and nothing between that and this pass}}
  %0 = arith.negf %a : tensor<4xf32>
  return
}
