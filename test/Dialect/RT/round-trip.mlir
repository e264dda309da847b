// RUN: nd-opt %s | nd-opt | FileCheck %s

// CHECK: rt.kernel @double inputs [memref<4x8xf32, strided<[32, 1]>>] results [memref<4x8xf32>] in_place = [-1]
rt.kernel @double inputs [memref<4x8xf32, strided<[32, 1]>>] results [memref<4x8xf32>] in_place = [-1] {
^bb0(%x: tensor<4x8xf32>):
  %r = nd.kernel(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32> {
  ^bb0(%a: tensor<4x8xf32>):
    %0 = arith.addf %a, %a : tensor<4x8xf32>
    nd.yield %0 : tensor<4x8xf32>
  }
}

// CHECK-LABEL: rt.program @step attributes {arena_bytes = 4096 : i64}
rt.program @step attributes {arena_bytes = 4096 : i64} {
  // CHECK: rt.tensor "weight" "w" at 0 {dim_axes = {{\[\[}}"dp"], []], global_shape = array<i64: 16, 32>} : memref<8x32xf32>
  %w = rt.tensor "weight" "w" at 0 {global_shape = array<i64: 16, 32>, dim_axes = [["dp"], []]} : memref<8x32xf32>
  // CHECK: rt.buffer at 1024 : memref<4x32xf32>
  %x = rt.buffer at 1024 : memref<4x32xf32>
  %y = rt.buffer : memref<4x8xf32>
  // CHECK: rt.constant dense<0.000000e+00> : tensor<8xf32> -> memref<8xf32>
  %b = rt.constant dense<0.0> : tensor<8xf32> -> memref<8xf32>
  // CHECK: rt.view %{{.*}} : memref<4x32xf32> to memref<4x8xf32, strided<[32, 1], offset: 8>>
  %v = rt.view %x : memref<4x32xf32> to memref<4x8xf32, strided<[32, 1], offset: 8>>
  %wt = rt.view %w : memref<8x32xf32> to memref<32x8xf32, strided<[1, 32]>>
  // CHECK: rt.phase forward
  rt.phase forward
  // CHECK: rt.launch @double ins(%{{.*}} : memref<4x8xf32, strided<[32, 1], offset: 8>>) outs(%{{.*}} : memref<4x8xf32>) in_place = [-1]
  rt.launch @double ins(%v : memref<4x8xf32, strided<[32, 1], offset: 8>>) outs(%y : memref<4x8xf32>) in_place = [-1]
  // CHECK: rt.gemm %{{.*}}, %{{.*}} bias(%{{.*}}) into %{{.*}} accumulate
  rt.gemm %x, %wt bias(%b) into %y accumulate
    : memref<4x32xf32>, memref<32x8xf32, strided<[1, 32]>> bias memref<8xf32> into memref<4x8xf32>
  // CHECK: %[[E:.*]] = rt.collective_start all_reduce ins(%{{.*}} : memref<4x8xf32>) outs(%{{.*}} : memref<4x8xf32>) axes = ["dp"] reduction = sum name = "gradient of w"
  %e = rt.collective_start all_reduce ins(%y : memref<4x8xf32>) outs(%y : memref<4x8xf32>) axes = ["dp"] reduction = sum name = "gradient of w"
  // CHECK: rt.wait %[[E]]
  rt.wait %e
  // CHECK: rt.copy
  rt.copy %y to %y : memref<4x8xf32> to memref<4x8xf32>
  // CHECK: rt.fill_zero
  rt.fill_zero %y : memref<4x8xf32>
}

// CHECK-LABEL: rt.program @attention
rt.program @attention {
  %qkv = rt.buffer : memref<2x8x48xf32>
  %q = rt.view %qkv : memref<2x8x48xf32> to memref<2x2x8x8xf32, strided<[384, 8, 48, 1]>>
  %k = rt.view %qkv : memref<2x8x48xf32> to memref<2x2x8x8xf32, strided<[384, 8, 48, 1], offset: 16>>
  %v = rt.view %qkv : memref<2x8x48xf32> to memref<2x2x8x8xf32, strided<[384, 8, 48, 1], offset: 32>>
  %o = rt.buffer : memref<2x2x8x8xf32>
  %lse = rt.buffer : memref<2x2x8xf32>
  // CHECK: rt.attention ins({{.*}}) outs({{.*}}) scale = 3.535000e-01 causal
  rt.attention ins(%q, %k, %v) outs(%o, %lse) scale = 0.3535 causal
    : memref<2x2x8x8xf32, strided<[384, 8, 48, 1]>>, memref<2x2x8x8xf32, strided<[384, 8, 48, 1], offset: 16>>,
      memref<2x2x8x8xf32, strided<[384, 8, 48, 1], offset: 32>> -> memref<2x2x8x8xf32>, memref<2x2x8xf32>
}

// CHECK-LABEL: rt.program @loop
rt.program @loop {
  %x = rt.tensor "input" "x" : memref<3x2x8xf32>
  %y = rt.buffer : memref<8xf32>
  // CHECK: rt.repeat count = 3 sliced(%{{.*}} : memref<3x2x8xf32>) {
  // CHECK-NEXT: ^bb0(%[[ROW:.*]]: memref<2x8xf32>):
  rt.repeat count = 3 sliced(%x : memref<3x2x8xf32>) {
  ^bb0(%row: memref<2x8xf32>):
    // CHECK: rt.view %[[ROW]] : memref<2x8xf32> to memref<8xf32, strided<[1], offset: 8>>
    %v = rt.view %row : memref<2x8xf32> to memref<8xf32, strided<[1], offset: 8>>
    rt.copy %v to %y : memref<8xf32, strided<[1], offset: 8>> to memref<8xf32>
  }
  // CHECK: rt.repeat count = 2 {
  rt.repeat count = 2 {
    rt.fill_zero %y : memref<8xf32>
  }
}
