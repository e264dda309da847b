// RUN: nd-opt %s -nd-annotate=shard=dp3 -split-input-file -verify-diagnostics

// expected-error @+1 {{dp = 3 does not divide dimension 0 of input 'ids', which has size 8; sizes of dp that work: 1, 2, 4, 8; or import with a --batch that is a multiple of 3}}
func.func @step(%ids: tensor<8x6xi64> {nd.kind = "input", nd.name = "ids"}) {
  return
}

// -----

// expected-error @+1 {{argument 0 of @step has no nd.kind, so there is no plan for it; give it one, or an nd.sharding}}
func.func @step(%ids: tensor<8x6xi64>) {
  return
}

// -----

// expected-error @+1 {{axis "dp" of size 3 does not divide dimension 1 of weight 'w', which has size 8; sizes of "dp" that work: 1, 2, 4, 8}}
func.func @step(%w: tensor<6x8xf32> {nd.kind = "weight", nd.name = "w", nd.sharding = #nd.sharding<@mesh, [{}, {"dp"}]>}) {
  return
}

// -----

// expected-error @+1 {{axis "tp" in the sharding of weight 'w' is not in mesh @mesh; its axes are dp}}
func.func @step(%w: tensor<6x8xf32> {nd.kind = "weight", nd.name = "w", nd.sharding = #nd.sharding<@mesh, [{}, {"tp"}]>}) {
  return
}

// -----

// expected-error @+1 {{the sharding of weight 'w' names mesh @other, but the mesh is @mesh}}
func.func @step(%w: tensor<6x8xf32> {nd.kind = "weight", nd.name = "w", nd.sharding = #nd.sharding<@other, [{}, {"dp"}]>}) {
  return
}

// -----

// expected-error @+1 {{the sharding of weight 'w' has 1 dimensions, but the tensor has 2}}
func.func @step(%w: tensor<6x8xf32> {nd.kind = "weight", nd.name = "w", nd.sharding = #nd.sharding<@mesh, [{"dp"}]>}) {
  return
}

// -----

// expected-error @+1 {{weight 'w' is annotated as unreduced; values cross the boundary of a step reduced}}
func.func @step(%w: tensor<6xf32> {nd.kind = "weight", nd.name = "w", nd.sharding = #nd.sharding<@mesh, [{}], unreduced = sum {"dp"}>}) {
  return
}

// -----

// expected-error @+1 {{nd.sharding of weight 'w' is "dp", but a #nd.sharding is expected}}
func.func @step(%w: tensor<6xf32> {nd.kind = "weight", nd.name = "w", nd.sharding = "dp"}) {
  return
}

// -----

// expected-error @+1 {{result weight 'w' has type 'tensor<3xf32>', but weight 'w' has type 'tensor<6xf32>'}}
func.func @step(%w: tensor<6xf32> {nd.kind = "weight", nd.name = "w"}, %x: tensor<3xf32> {nd.kind = "scalar", nd.name = "x"})
    -> (tensor<3xf32> {nd.kind = "weight", nd.name = "w"}) {
  return %x : tensor<3xf32>
}

// -----

// expected-error @+1 {{the module has a mesh already; annotate a program once}}
nd.mesh @mesh axes [#nd.axis<"dp" = 3, replicate>]
func.func @step() {
  return
}

// -----

// expected-note @+1 {{the first is here}}
func.func @forward() {
  return
}
// expected-error @+1 {{a model has one function, but @step is the second}}
func.func @step() {
  return
}

// -----

// expected-error @+1 {{there is no function to shard}}
module {
}

// -----

// expected-error @+1 {{sharding needs values that are tensors of static shape, but 'func.func' has one of type 'tensor<?xf32>'}}
func.func @step(%x: tensor<?xf32> {nd.kind = "input", nd.name = "x"}) {
  return
}

// -----

func.func @step(%c: i1) {
  return
}
// expected-error @-3 {{sharding needs values that are tensors of static shape, but 'func.func' has one of type 'i1'}}

// -----

func.func @step() {
  %true = arith.constant dense<true> : tensor<i1>
  // expected-error @+1 {{sharding needs straight-line code, but 'nd.kernel' has a region}}
  %0 = nd.kernel (%true) : (tensor<i1>) -> tensor<i1> {
  ^bb0(%a: tensor<i1>):
    nd.yield %a : tensor<i1>
  }
  return
}
