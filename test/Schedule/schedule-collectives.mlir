// RUN: nd-opt %s -nd-schedule-collectives -split-input-file | FileCheck %s
// RUN: nd-opt %s -nd-schedule-collectives=prefetch-units=2 -split-input-file | FileCheck %s --check-prefix=TWO
// RUN: not nd-opt %s -nd-schedule-collectives=prefetch-units=-1 -split-input-file 2>&1 | FileCheck %s --check-prefix=ZERO

// ZERO: prefetch-units=-1, but a gather starts at least 1 unit ahead

nd.mesh @mesh axes [#nd.axis<"fsdp" = 2, shard>]

// A unit's gathers start at the first reader of the unit before, with the shards in the type of computation; those of the first unit at
// once. With two units ahead as far as the products do not hide the gather: these are too small to hide any.
// CHECK-LABEL: func.func @units
// CHECK: nd.all_gather %arg1 {{.*}} nd.unit = "h.0"}
// CHECK-NEXT: %[[C1:.*]] = arith.truncf %arg2
// CHECK-NEXT: nd.all_gather %[[C1]] {{.*}} nd.unit = "h.1"}
// CHECK-NEXT: %[[Y0:.*]] = nd.dot_general %arg0
// CHECK-NEXT: nd.all_gather %arg3 {{.*}} nd.unit = "head"}
// CHECK-NEXT: arith.extf
// CHECK-NEXT: %[[Y1:.*]] = nd.dot_general %[[Y0]]
// CHECK-NEXT: nd.dot_general %[[Y1]]
// TWO-LABEL: func.func @units
// TWO: nd.unit = "h.0"}
// TWO-NEXT: arith.truncf
// TWO-NEXT: nd.unit = "h.1"}
// TWO-NEXT: nd.unit = "head"}
// TWO-NEXT: nd.dot_general
func.func @units(%x: tensor<4x4xf32>, %a: tensor<2x4xf32>, %b: tensor<2x4xf32>, %c: tensor<2x4xf32>) -> tensor<4x4xf32> {
  %0 = nd.all_gather %a over @mesh ["fsdp"] dims = [0] instance = 1 names = ["a"] reason = "r" {nd.unit = "h.0"} : tensor<2x4xf32> -> tensor<4x4xf32>
  %1 = nd.dot_general %x, %0 contract = [1] x [0] : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  %2 = arith.truncf %b : tensor<2x4xf32> to tensor<2x4xbf16>
  %3 = nd.all_gather %2 over @mesh ["fsdp"] dims = [0] instance = 2 names = ["b"] reason = "r" {nd.unit = "h.1"} : tensor<2x4xbf16> -> tensor<4x4xbf16>
  %4 = arith.extf %3 : tensor<4x4xbf16> to tensor<4x4xf32>
  %5 = nd.dot_general %1, %4 contract = [1] x [0] : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  %6 = nd.all_gather %c over @mesh ["fsdp"] dims = [0] instance = 3 names = ["c"] reason = "r" {nd.unit = "head"} : tensor<2x4xf32> -> tensor<4x4xf32>
  %7 = nd.dot_general %5, %6 contract = [1] x [0] : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  return %7 : tensor<4x4xf32>
}

// -----

nd.mesh @mesh axes [#nd.axis<"fsdp" = 2, shard>]

// A shard is rounded right before its gather, wherever that stood; one that something else reads too stays.
// CHECK-LABEL: func.func @rounded
// CHECK-NEXT: %[[G0:.*]] = nd.all_gather %arg1 {{.*}} nd.unit = "h.0"}
// CHECK-NEXT: %[[C1:.*]] = arith.truncf %arg3
// CHECK-NEXT: nd.all_gather %[[C1]] {{.*}} nd.unit = "h.1"}
// CHECK-NEXT: nd.dot_general %arg0, %[[G0]]
// CHECK-NEXT: %[[C2:.*]] = arith.truncf %arg2
// CHECK-NEXT: nd.all_gather %[[C2]] {{.*}} nd.unit = "h.2"}
func.func @rounded(%x: tensor<4x4xf32>, %a: tensor<2x4xf32>, %b: tensor<2x4xf32>, %c: tensor<2x4xf32>)
    -> (tensor<4x4xf32>, tensor<2x4xbf16>) {
  %c2 = arith.truncf %b : tensor<2x4xf32> to tensor<2x4xbf16>
  %c1 = arith.truncf %c : tensor<2x4xf32> to tensor<2x4xbf16>
  %0 = nd.all_gather %a over @mesh ["fsdp"] dims = [0] instance = 1 names = ["a"] reason = "r" {nd.unit = "h.0"} : tensor<2x4xf32> -> tensor<4x4xf32>
  %1 = nd.dot_general %x, %0 contract = [1] x [0] : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  %2 = nd.all_gather %c1 over @mesh ["fsdp"] dims = [0] instance = 2 names = ["c"] reason = "r" {nd.unit = "h.1"} : tensor<2x4xbf16> -> tensor<4x4xbf16>
  %3 = arith.extf %2 : tensor<4x4xbf16> to tensor<4x4xf32>
  %4 = nd.dot_general %1, %3 contract = [1] x [0] : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  %5 = nd.all_gather %c2 over @mesh ["fsdp"] dims = [0] instance = 3 names = ["b"] reason = "r" {nd.unit = "h.2"} : tensor<2x4xbf16> -> tensor<4x4xbf16>
  %6 = arith.extf %5 : tensor<4x4xbf16> to tensor<4x4xf32>
  %7 = nd.dot_general %4, %6 contract = [1] x [0] : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  return %7, %c1 : tensor<4x4xf32>, tensor<2x4xbf16>
}

// -----

nd.mesh @mesh axes [#nd.axis<"dp" = 2, replicate>, #nd.axis<"fsdp" = 2, shard>]

// What reads a gradient's reduction comes behind the start of the next; the second reduction of the same gradient too, and its
// readers one later. What a product waits for stays.
// CHECK-LABEL: func.func @gradients
// CHECK: nd.dot_general %arg0, %arg0
// CHECK-NEXT: %[[S0:.*]] = nd.reduce_scatter {{.*}} instance = 1
// CHECK-NEXT: nd.all_reduce {{.*}} instance = 2
// CHECK-NEXT: nd.dot_general
// CHECK-NEXT: %[[S1:.*]] = nd.reduce_scatter {{.*}} instance = 3
// CHECK-NEXT: %[[R0:.*]] = nd.all_reduce sum %[[S0]] {{.*}} instance = 4
// CHECK-NEXT: nd.dot_general
// CHECK-NEXT: %[[S2:.*]] = nd.reduce_scatter {{.*}} instance = 5
// CHECK-NEXT: arith.negf %[[R0]]
// CHECK-NEXT: arith.negf %[[S1]]
// CHECK-NEXT: arith.negf %[[S2]]
// CHECK-NEXT: return
func.func @gradients(%x: tensor<4x4xf32>) -> (tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>) {
  %0 = nd.dot_general %x, %x contract = [1] x [0] : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  %s0 = nd.reduce_scatter sum %0 over @mesh ["fsdp"] dims = [0] instance = 1 names = ["a"] reason = "r" : tensor<4x4xf32> -> tensor<2x4xf32>
  %r0 = nd.all_reduce sum %s0 over @mesh ["dp"] instance = 4 names = ["a"] reason = "r" : tensor<2x4xf32>
  %u0 = arith.negf %r0 : tensor<2x4xf32>
  %y = nd.all_reduce sum %x over @mesh ["dp"] instance = 2 names = ["y"] reason = "r" : tensor<4x4xf32>
  %1 = nd.dot_general %x, %y contract = [1] x [0] : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  %s1 = nd.reduce_scatter sum %1 over @mesh ["fsdp"] dims = [0] instance = 3 names = ["b"] reason = "r" : tensor<4x4xf32> -> tensor<2x4xf32>
  %u1 = arith.negf %s1 : tensor<2x4xf32>
  %2 = nd.dot_general %y, %y contract = [1] x [0] : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  %s2 = nd.reduce_scatter sum %2 over @mesh ["fsdp"] dims = [0] instance = 5 names = ["c"] reason = "r" : tensor<4x4xf32> -> tensor<2x4xf32>
  %u2 = arith.negf %s2 : tensor<2x4xf32>
  return %u0, %u1, %u2 : tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>
}

// -----

nd.mesh @mesh axes [#nd.axis<"cp" = 3, context>]

// Keys and values of the next step of a ring go around beside the attention of this one, also where one of them was ready before.
// CHECK-LABEL: func.func @ring
// CHECK: %[[Q:.*]] = nd.dot_general
// CHECK: nd.permute %arg0 {{.*}} name = "keys"
// CHECK-NEXT: nd.permute %arg0 {{.*}} name = "values"
// CHECK-NEXT: nd.attention %[[Q]], %arg0, %arg0 scale
// CHECK-NEXT: nd.permute {{.*}} name = "keys"
// CHECK-NEXT: nd.permute {{.*}} name = "values"
// CHECK-NEXT: nd.attention %[[Q]], %{{.*}}, %{{.*}} carry
// CHECK-NEXT: nd.attention %[[Q]], %{{.*}}, %{{.*}} carry
func.func @ring(%x: tensor<1x1x2x4xf32>, %w: tensor<4x4xf32>) -> tensor<1x1x2x4xf32> {
  %v1 = nd.permute %x over @mesh ["cp"] sources = [2, 0, 1] instance = 1 name = "values" reason = "r" : tensor<1x1x2x4xf32>
  %v2 = nd.permute %v1 over @mesh ["cp"] sources = [2, 0, 1] instance = 2 name = "values" reason = "r" : tensor<1x1x2x4xf32>
  %q = nd.dot_general %x, %w contract = [3] x [0] : tensor<1x1x2x4xf32>, tensor<4x4xf32> -> tensor<1x1x2x4xf32>
  %k1 = nd.permute %x over @mesh ["cp"] sources = [2, 0, 1] instance = 3 name = "keys" reason = "r" : tensor<1x1x2x4xf32>
  %y0, %l0 = nd.attention %q, %x, %x scale = 1.0 causal {key_shards = 3 : i64, seq_axes = ["cp"]} : tensor<1x1x2x4xf32>, tensor<1x1x2x4xf32>, tensor<1x1x2x4xf32> -> tensor<1x1x2x4xf32>, tensor<1x1x2xf32>
  %k2 = nd.permute %k1 over @mesh ["cp"] sources = [2, 0, 1] instance = 4 name = "keys" reason = "r" : tensor<1x1x2x4xf32>
  %y1, %l1 = nd.attention %q, %k1, %v1 carry(%y0, %l0 : tensor<1x1x2x4xf32>, tensor<1x1x2xf32>) scale = 1.0 causal {key_shards = 3 : i64, ring_step = 1 : i64, seq_axes = ["cp"]} : tensor<1x1x2x4xf32>, tensor<1x1x2x4xf32>, tensor<1x1x2x4xf32> -> tensor<1x1x2x4xf32>, tensor<1x1x2xf32>
  %y2, %l2 = nd.attention %q, %k2, %v2 carry(%y1, %l1 : tensor<1x1x2x4xf32>, tensor<1x1x2xf32>) scale = 1.0 causal {key_shards = 3 : i64, ring_step = 2 : i64, seq_axes = ["cp"]} : tensor<1x1x2x4xf32>, tensor<1x1x2x4xf32>, tensor<1x1x2x4xf32> -> tensor<1x1x2x4xf32>, tensor<1x1x2xf32>
  return %y2 : tensor<1x1x2x4xf32>
}
