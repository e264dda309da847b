// RUN: nd-compile %s -o %t --verbose 2>&1 | FileCheck %s --check-prefix=LOG
// RUN: FileCheck %s < %t/manifest.json
// RUN: llvm-readelf -d %t/rank0 | FileCheck %s --check-prefix=NEEDS

// LOG: passes
// LOG: kernels
// LOG: link

// An executable needs the library of products, and nothing of the compiler.
// NEEDS-NOT: LLVM
// NEEDS-NOT: MLIR
// NEEDS: libdnnl.so
// NEEDS-NOT: LLVM
// NEEDS-NOT: MLIR

// CHECK: "format": "nd.program",
// CHECK: "name": "lin",
// CHECK: "ranks": 1,
// CHECK: "file": "rank0"
// CHECK: "kind": "weight",
// CHECK-NEXT: "name": "w",
// CHECK-NEXT: "dtype": "f32",
// CHECK: "arena_bytes":

module attributes {nd.model = {name = "lin"}} {
func.func @step(%x: tensor<6x16xf32> {nd.kind = "input", nd.name = "x"}, %t: tensor<6x8xf32> {nd.kind = "input", nd.name = "t"},
   %w: tensor<8x16xf32> {nd.kind = "weight", nd.name = "w"}, %b: tensor<8xf32> {nd.kind = "weight", nd.name = "b"}, %lr: tensor<f32> {nd.kind = "scalar", nd.name = "lr"})
  -> (tensor<8x16xf32> {nd.kind = "weight", nd.name = "w"}, tensor<8xf32> {nd.kind = "weight", nd.name = "b"}, tensor<f32> {nd.kind = "metric", nd.name = "loss"}) {
  %0 = nd.dot_general %x, %w contract = [1] x [1] : tensor<6x16xf32>, tensor<8x16xf32> -> tensor<6x8xf32>
  %1 = nd.broadcast %b dims = [1] : tensor<8xf32> -> tensor<6x8xf32>
  %y = arith.addf %0, %1 : tensor<6x8xf32>
  %d = arith.subf %y, %t : tensor<6x8xf32>
  %sq = arith.mulf %d, %d : tensor<6x8xf32>
  %loss = nd.reduce sum %sq dims = [0, 1] : tensor<6x8xf32> -> tensor<f32>
  %two = arith.constant dense<2.0> : tensor<6x8xf32>
  %g = arith.mulf %d, %two : tensor<6x8xf32>
  %gw = nd.dot_general %g, %x contract = [0] x [0] : tensor<6x8xf32>, tensor<6x16xf32> -> tensor<8x16xf32>
  %gb = nd.reduce sum %g dims = [0] : tensor<6x8xf32> -> tensor<8xf32>
  %lw = nd.broadcast %lr dims = [] : tensor<f32> -> tensor<8x16xf32>
  %lb = nd.broadcast %lr dims = [] : tensor<f32> -> tensor<8xf32>
  %sw = arith.mulf %gw, %lw : tensor<8x16xf32>
  %sb = arith.mulf %gb, %lb : tensor<8xf32>
  %nw = arith.subf %w, %sw : tensor<8x16xf32>
  %nb = arith.subf %b, %sb : tensor<8xf32>
  return %nw, %nb, %loss : tensor<8x16xf32>, tensor<8xf32>, tensor<f32>
}
}
