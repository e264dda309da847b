// What ranks hold together must be the whole tensor.
// RUN: sed 's/@MORE@/nd.blocks = [[3, 2], []]/' %s >%t.mlir && nd-compile %t.mlir -o %t
// RUN: FileCheck %s --check-prefix=MANIFEST <%t/manifest.json
// RUN: sed 's/@MORE@/nd.blocks = [[2, 2], []]/' %s >%t.mlir && not nd-compile %t.mlir -o %t 2>&1 | FileCheck %s --check-prefix=COVER
// RUN: sed 's/@MORE@/nd.blocks = [[4, 3], []]/' %s >%t.mlir && not nd-compile %t.mlir -o %t 2>&1 | FileCheck %s --check-prefix=LOCAL
// RUN: sed 's/@MORE@/nd.blocks = [[3], []]/' %s >%t.mlir && not nd-compile %t.mlir -o %t 2>&1 | FileCheck %s --check-prefix=COUNT
// RUN: sed 's/@MORE@/nd.blocks = 3/' %s >%t.mlir && not nd-compile %t.mlir -o %t 2>&1 | FileCheck %s --check-prefix=LIST
// RUN: sed 's/@MORE@/nd.chunks = {dim = 0, order = array<i64: 0, 2, 1>, size = 2}/' %s >%t.mlir && not nd-compile %t.mlir -o %t 2>&1 | FileCheck %s --check-prefix=UNITS
// RUN: sed 's/@MORE@/nd.chunks = {dim = 0, order = array<i64: 0, 2, 2, 3>, size = 2}/' %s >%t.mlir && not nd-compile %t.mlir -o %t 2>&1 | FileCheck %s --check-prefix=NOWHERE
// RUN: sed 's/@MORE@/nd.chunks = {dim = 0, size = 2}/' %s >%t.mlir && not nd-compile %t.mlir -o %t 2>&1 | FileCheck %s --check-prefix=CHUNKS
// RUN: sed 's/@MORE@/nd.copies = {dim = 0, unit = 2, table = [0, 1]}/' %s >%t.mlir && not nd-compile %t.mlir -o %t 2>&1 | FileCheck %s --check-prefix=COPIES
// RUN: sed 's/@MORE@/nd.copies = {dim = 0, unit = 2, table = [[0], [0], [1], [2]]}, nd.pad_value = "x"/' %s >%t.mlir && not nd-compile %t.mlir -o %t 2>&1 | FileCheck %s --check-prefix=VALUE

// MANIFEST: "dim_blocks": [
// MANIFEST-NEXT: [
// MANIFEST-NEXT: 3,
// MANIFEST-NEXT: 2
// COVER: has 2 blocks of 2 in dimension 0, which do not cover 5 elements
// LOCAL: has blocks of 3 in dimension 0, more than the 2 elements on a rank
// COUNT: dim_blocks of dimension 0 must be empty or hold a size for each of its 2 axes
// LIST: nd.blocks of input 'x' is 3 : i64; expected a list of block sizes for each dimension
// UNITS: stores dimension 0 as 3 units of 2, but 4 shards of 2 are not that
// NOWHERE: stores logical unit 1 of dimension 0 nowhere
// CHUNKS: nd.chunks of input 'x' is {dim = 0 : i64, size = 2 : i64}; expected {dim = 1, order = array<i64: 0, 3, 1, 2>, size = 16}
// COPIES: nd.copies of input 'x' is {{.*}}; expected {dim = 0, unit = 64, table = {{\[\[}}0], [0], [1], [1]]}
// VALUE: nd.pad_value of input 'x' is "x"; expected an integer

nd.mesh @mesh axes [#nd.axis<"dp" = 2, replicate>, #nd.axis<"tp" = 2, tensor>]
func.func @f(%x: tensor<2x3xf32> {nd.kind = "input", nd.name = "x", nd.sharding = #nd.sharding<@mesh, [{"dp", "tp"}, {}]>, nd.global_shape = array<i64: 5, 3>, @MORE@})
    -> (tensor<2x3xf32> {nd.kind = "output", nd.name = "y", nd.sharding = #nd.sharding<@mesh, [{"dp", "tp"}, {}]>, nd.global_shape = array<i64: 8, 3>}) {
  %0 = arith.addf %x, %x : tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}
