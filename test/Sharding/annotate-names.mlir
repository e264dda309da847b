// RUN: nd-opt %s --forward-only --shard=tp2 --annotate='*.qkv=[_,tp]' --annotate='head=[_,_]' | FileCheck %s
// RUN: not nd-opt %s --forward-only --shard=tp2 --annotate='proj=[_,tp]' 2>&1 | FileCheck %s --check-prefix=NAMES

// RUN: nd-opt %s --forward-only --shard=tp2 --annotate='scale=[]' | FileCheck %s --check-prefix=NUMBER

// NUMBER: tensor<f32> {{[^%]*}}nd.name = "scale", nd.sharding = #nd.sharding<@mesh, []>

// Users call a fused parameter by its own name, not by those of its parts, and a tied one by any of its names.
// CHECK-DAG: tensor<8x4xf32> {{[^%]*}}nd.name = "a.qkv#0"
// CHECK-DAG: tensor<8x4xf32> {{[^%]*}}nd.name = "a.qkv#1"
// CHECK-DAG: tensor<8x8xf32> {{[^%]*}}nd.name = "table"
// NAMES: no parameter or input has such a name; some that exist are 'a.qkv', 'table'
func.func @forward(%x: tensor<4x8xf32> {nd.kind = "input", nd.name = "x"},
                   %q: tensor<8x8xf32> {nd.kind = "weight", nd.name = "a.qkv#0", nd.part = {name = "a.qkv", dim = 1, offset = 0, size = 16}},
                   %k: tensor<8x8xf32> {nd.kind = "weight", nd.name = "a.qkv#1", nd.part = {name = "a.qkv", dim = 1, offset = 8, size = 16}},
                   %table: tensor<8x8xf32> {nd.aliases = ["head"], nd.kind = "weight", nd.name = "table"},
                   %scale: tensor<f32> {nd.kind = "weight", nd.name = "scale"})
    -> (tensor<4x8xf32> {nd.kind = "output", nd.name = "y"}) {
  %0 = nd.dot_general %x, %table contract = [1] x [0] : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  %1 = nd.dot_general %0, %q contract = [1] x [0] : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  %2 = nd.dot_general %0, %k contract = [1] x [0] : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  %3 = arith.mulf %1, %2 : tensor<4x8xf32>
  %4 = nd.dot_general %3, %table contract = [1] x [1] : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  %wide = nd.broadcast %scale dims = [] : tensor<f32> -> tensor<4x8xf32>
  %5 = arith.mulf %4, %wide : tensor<4x8xf32>
  return %5 : tensor<4x8xf32>
}
