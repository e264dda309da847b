// RUN: nd-opt %s -nd-partition -split-input-file -verify-diagnostics

nd.mesh @mesh axes [#nd.axis<"dp" = 2, replicate>]
// expected-error @+1 {{result 0 leaves the function without a sharding; run nd-insert-reshards first}}
func.func @plain(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}

// -----

// expected-error @+1 {{there is no nd.mesh; run nd-annotate first}}
module {
  func.func @no_mesh(%x: tensor<4xf32>) -> tensor<4xf32> {
    return %x : tensor<4xf32>
  }
}
