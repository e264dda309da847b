// RUN: nd-opt %s -nd-partition -split-input-file -verify-diagnostics

nd.mesh @mesh axes [#nd.axis<"dp" = 2, replicate>]
func.func @cut(%x: tensor<4xf32, #nd.sharding<@mesh, [{}]>>) -> tensor<4xf32, #nd.sharding<@mesh, [{"dp"}]>> {
  // expected-error @+1 {{dimension 0 of a tensor that is replicated over dp is needed sharded over it, and cutting a shard out of a whole tensor is built in the next release; in the model, keep the sharded dimension the major one where dimensions are merged (batch first), or use one rank (why)}}
  %0 = nd.reshard %x instance = 1 name = "x" reason = "why" : tensor<4xf32, #nd.sharding<@mesh, [{}]>> -> tensor<4xf32, #nd.sharding<@mesh, [{"dp"}]>>
  return %0 : tensor<4xf32, #nd.sharding<@mesh, [{"dp"}]>>
}

// -----

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
