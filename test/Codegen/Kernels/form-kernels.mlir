// RUN: nd-opt %s -nd-decompose -canonicalize -cse -nd-form-kernels -split-input-file | FileCheck %s

// A residual and its layer norm, in three stages on a row.
// CHECK-LABEL: func @add_layer_norm
// CHECK: %[[K:.*]]:4 = nd.kernel
// CHECK: arith.addf
// CHECK: nd.reduce sum
// CHECK: nd.reduce sum
// CHECK: nd.yield
// CHECK-NOT: nd.kernel
// CHECK: return
func.func @add_layer_norm(%x: tensor<2x8x64xf32>, %a: tensor<2x8x64xf32>, %w: tensor<64xf32>, %b: tensor<64xf32>) -> (tensor<2x8x64xf32>, tensor<2x8x64xf32>, tensor<2x8xf32>, tensor<2x8xf32>) {
  %s = arith.addf %x, %a : tensor<2x8x64xf32>
  %y, %m, %r = nd.layer_norm %s, %w, %b eps = 1.0e-5 : tensor<2x8x64xf32>, tensor<64xf32>, tensor<64xf32> -> tensor<2x8xf32>
  return %s, %y, %m, %r : tensor<2x8x64xf32>, tensor<2x8x64xf32>, tensor<2x8xf32>, tensor<2x8xf32>
}

// -----

// The sum of the losses must not tie the kernel that makes them to the number that scales their gradient: loss and
// gradient of the logits are one kernel.
// CHECK-LABEL: func @cross_entropy
// CHECK: %[[SCALE:.*]] = nd.kernel(%arg1) : (tensor<16xi64>) -> tensor<f32>
// CHECK: %[[CE:.*]]:2 = nd.kernel({{.*}}%[[SCALE]]{{.*}}) : {{.*}} -> (tensor<16xf32>, tensor<16x257xf32>)
// CHECK: %[[LOSS:.*]] = nd.kernel({{.*}}%[[CE]]#0{{.*}}) : {{.*}} -> tensor<f32>
// CHECK-NOT: nd.kernel
// CHECK: return %[[LOSS]], %[[CE]]#1
func.func @cross_entropy(%x: tensor<16x257xf32>, %l: tensor<16xi64>) -> (tensor<f32>, tensor<16x257xf32>) {
  %k = arith.constant dense<-100> : tensor<16xi64>
  %one = arith.constant dense<1.0> : tensor<f32>
  %zeros = arith.constant dense<0.0> : tensor<16xf32>
  %ones = arith.constant dense<1.0> : tensor<16xf32>
  %valid = arith.cmpi ne, %l, %k : tensor<16xi64>
  %counts = arith.select %valid, %ones, %zeros : tensor<16xi1>, tensor<16xf32>
  %count = nd.reduce sum %counts dims = [0] : tensor<16xf32> -> tensor<f32>
  %losses, %lse = nd.softmax_cross_entropy %x, %l ignore = -100 : tensor<16x257xf32>, tensor<16xi64> -> tensor<16xf32>
  %sum = nd.reduce sum %losses dims = [0] : tensor<16xf32> -> tensor<f32>
  %scale = arith.divf %one, %count : tensor<f32>
  %loss = arith.mulf %sum, %scale : tensor<f32>
  %g = nd.broadcast %scale dims = [] : tensor<f32> -> tensor<16xf32>
  %d = nd.softmax_cross_entropy_grad %x, %l, %lse, %g ignore = -100 : tensor<16x257xf32>, tensor<16xi64>, tensor<16xf32>
  return %loss, %d : tensor<f32>, tensor<16x257xf32>
}

// -----

// Views between kernels stay outside; a reshape inside of a kernel that keeps rows and columns does not end it.
// CHECK-LABEL: func @views
// CHECK: %[[T:.*]] = nd.transpose %arg0
// CHECK: nd.kernel(%[[T]]
// CHECK: arith.negf
// CHECK: nd.reshape
// CHECK: math.exp
// CHECK: nd.yield
// CHECK-NOT: nd.kernel
func.func @views(%x: tensor<8x4x16xf32>) -> tensor<32x16xf32> {
  %t = nd.transpose %x permutation = [1, 0, 2] : tensor<8x4x16xf32> -> tensor<4x8x16xf32>
  %n = arith.negf %t : tensor<4x8x16xf32>
  %r = nd.reshape %n : tensor<4x8x16xf32> -> tensor<32x16xf32>
  %e = math.exp %r : tensor<32x16xf32>
  return %e : tensor<32x16xf32>
}

// -----

// A kernel that would have to run both before and after a product is two.
// CHECK-LABEL: func @no_cycle
// CHECK: %[[A:.*]] = nd.kernel(%arg0)
// CHECK: %[[G:.*]] = nd.gemm %[[A]]
// CHECK: nd.kernel
func.func @no_cycle(%x: tensor<8x8xf32>, %w: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %e = math.sin %x : tensor<8x8xf32>
  %g = nd.gemm %e, %w : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
  %s = arith.addf %e, %g : tensor<8x8xf32>
  return %s : tensor<8x8xf32>
}

// -----

// What is cheap to compute from the same operand is not kept for the second kernel.
// CHECK-LABEL: func @recompute
// CHECK: nd.kernel(%arg0) : (tensor<8x64xf32>) -> tensor<8x64xf32>
// CHECK: nd.gemm
// CHECK: nd.kernel({{.*}}) : (tensor<8x64xf32>, tensor<8x64xf32>) -> tensor<8x64xf32>
// CHECK: math.tanh
func.func @recompute(%x: tensor<8x64xf32>, %w: tensor<64x64xf32>) -> tensor<8x64xf32> {
  %t = math.tanh %x : tensor<8x64xf32>
  %a = arith.mulf %t, %x : tensor<8x64xf32>
  %g = nd.gemm %a, %w : tensor<8x64xf32>, tensor<64x64xf32> -> tensor<8x64xf32>
  %s = arith.mulf %t, %g : tensor<8x64xf32>
  return %s : tensor<8x64xf32>
}

// -----

// Parts that products write are written where they end up; parts that a kernel computes belong to it.
// CHECK-LABEL: func @concatenations
// CHECK: %[[G:.*]] = nd.gemm
// CHECK: %[[H:.*]] = nd.gemm
// CHECK: %[[C:.*]] = nd.concat %[[G]], %[[H]]
// CHECK: %[[K:.*]] = nd.kernel
// CHECK: nd.concat
// CHECK: return %[[C]], %[[K]]
func.func @concatenations(%x: tensor<8x8xf32>, %w: tensor<8x8xf32>) -> (tensor<8x16xf32>, tensor<8x16xf32>) {
  %g = nd.gemm %x, %w : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
  %h = nd.gemm %w, %x : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
  %c = nd.concat %g, %h dim = 1 : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x16xf32>
  %n = arith.negf %x : tensor<8x8xf32>
  %e = math.exp %w : tensor<8x8xf32>
  %k = nd.concat %n, %e dim = 1 : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x16xf32>
  return %c, %k : tensor<8x16xf32>, tensor<8x16xf32>
}

// -----

// A bias's gradient beside what it sums, and the sum of squares of everything alone.
// CHECK-LABEL: func @column_sums
// CHECK: nd.kernel({{.*}}) : {{.*}} -> (tensor<16x64xf32>, tensor<64xf32>)
// CHECK: nd.kernel({{.*}}) : (tensor<16x1024xf32>) -> tensor<f32>
func.func @column_sums(%x: tensor<16x64xf32>, %y: tensor<16x1024xf32>) -> (tensor<16x64xf32>, tensor<64xf32>, tensor<f32>) {
  %e = math.exp %x : tensor<16x64xf32>
  %c = nd.reduce sum %e dims = [0] : tensor<16x64xf32> -> tensor<64xf32>
  %q = arith.mulf %y, %y : tensor<16x1024xf32>
  %t = nd.reduce sum %q dims = [0, 1] : tensor<16x1024xf32> -> tensor<f32>
  return %e, %c, %t : tensor<16x64xf32>, tensor<64xf32>, tensor<f32>
}

// -----

// What is stored is the narrow value: readers widen it themselves.
// CHECK-LABEL: func.func @narrow(
func.func @narrow(%x: tensor<8x64xf32>, %w: tensor<64x64xbf16>) -> (tensor<8x64xbf16>, tensor<8x64xbf16>) {
  // CHECK: %[[N:.*]] = nd.kernel(%{{.*}}) : (tensor<8x64xf32>) -> tensor<8x64xbf16>
  %0 = math.exp %x : tensor<8x64xf32>
  %1 = arith.truncf %0 : tensor<8x64xf32> to tensor<8x64xbf16>
  // CHECK: %[[P:.*]] = nd.gemm %[[N]]
  %2 = nd.gemm %1, %w : tensor<8x64xbf16>, tensor<64x64xbf16> -> tensor<8x64xbf16>
  // CHECK: nd.kernel(%{{.*}}, %[[P]]) : (tensor<8x64xf32>, tensor<8x64xbf16>) -> tensor<8x64xbf16>
  %3 = arith.extf %2 : tensor<8x64xbf16> to tensor<8x64xf32>
  %4 = arith.extf %1 : tensor<8x64xbf16> to tensor<8x64xf32>
  %5 = arith.addf %3, %4 : tensor<8x64xf32>
  %6 = arith.truncf %5 : tensor<8x64xf32> to tensor<8x64xbf16>
  return %1, %6 : tensor<8x64xbf16>, tensor<8x64xbf16>
}

// -----

// What is computed again stays with its reader, although all of its operands are at hand before.
// CHECK-LABEL: func.func @recomputed(
func.func @recomputed(%x: tensor<8x64xf32>, %w: tensor<64x64xf32>) -> tensor<8x64xf32> {
  // CHECK: %[[A:.*]] = nd.kernel(%{{.*}}) : (tensor<8x64xf32>) -> tensor<8x64xf32>
  %0 = math.exp %x : tensor<8x64xf32>
  %1 = nd.gemm %0, %w : tensor<8x64xf32>, tensor<64x64xf32> -> tensor<8x64xf32>
  %2 = arith.mulf %0, %x {nd.recomputed} : tensor<8x64xf32>
  // CHECK: %[[P:.*]] = nd.gemm %[[A]]
  // CHECK: nd.kernel(%{{.*}}, %[[P]])
  // CHECK: arith.mulf
  // CHECK: arith.addf
  %3 = arith.addf %1, %2 : tensor<8x64xf32>
  return %3 : tensor<8x64xf32>
}

// -----

// The f32 form of a bias comes right before the product that reads it.
// CHECK-LABEL: func.func @bias(
func.func @bias(%x: tensor<8x64xbf16>, %w: tensor<64x64xbf16>, %b: tensor<64xbf16>) -> tensor<8x64xbf16> {
  %0 = arith.extf %b : tensor<64xbf16> to tensor<64xf32>
  // CHECK: %[[P:.*]] = nd.gemm
  %1 = nd.gemm %x, %w : tensor<8x64xbf16>, tensor<64x64xbf16> -> tensor<8x64xbf16>
  // CHECK: %[[B:.*]] = nd.kernel(%{{.*}}) : (tensor<64xbf16>) -> tensor<64xf32>
  // CHECK: nd.gemm %[[P]], %{{.*}} bias(%[[B]]
  %2 = nd.gemm %1, %w bias(%0 : tensor<64xf32>) : tensor<8x64xbf16>, tensor<64x64xbf16> -> tensor<8x64xbf16>
  return %2 : tensor<8x64xbf16>
}

// -----

nd.mesh @mesh axes [#nd.axis<"fsdp" = 2, shard>]

// A kernel does not wait for its reader where it would hold parameters that are given back before.
// CHECK-LABEL: func.func @given_back(
func.func @given_back(%x: tensor<8x64xf32>, %b: tensor<32xf32>, %w: tensor<32x64xf32>) -> (tensor<8x64xf32>, tensor<8x64xf32>) {
  %g0 = nd.all_gather %b over @mesh ["fsdp"] dims = [0] instance = 1 names = ["b"] reason = "r" {nd.unit = "h.0"} : tensor<32xf32> -> tensor<64xf32>
  %g1 = nd.all_gather %w over @mesh ["fsdp"] dims = [0] instance = 2 names = ["w"] reason = "r" {nd.unit = "h.1"} : tensor<32x64xf32> -> tensor<64x64xf32>
  %g2 = nd.all_gather %w over @mesh ["fsdp"] dims = [0] instance = 3 names = ["w"] reason = "r" {nd.unit = "h.2"} : tensor<32x64xf32> -> tensor<64x64xf32>
  // CHECK: nd.kernel({{.*}}%{{.*}}) : ({{.*}}tensor<64xf32>
  %r = nd.broadcast %g0 dims = [1] : tensor<64xf32> -> tensor<8x64xf32>
  %0 = arith.addf %x, %r : tensor<8x64xf32>
  // CHECK: nd.gemm
  %1 = nd.gemm %x, %g1 : tensor<8x64xf32>, tensor<64x64xf32> -> tensor<8x64xf32>
  // CHECK: nd.gemm
  %2 = nd.gemm %1, %g2 : tensor<8x64xf32>, tensor<64x64xf32> -> tensor<8x64xf32>
  // CHECK: nd.kernel
  %3 = arith.mulf %0, %2 : tensor<8x64xf32>
  // CHECK: nd.unit = "h.0, again"
  %g3 = nd.all_gather %b over @mesh ["fsdp"] dims = [0] instance = 4 names = ["b"] reason = "r" {nd.unit = "h.0, again"} : tensor<32xf32> -> tensor<64xf32>
  %s = nd.broadcast %g3 dims = [1] : tensor<64xf32> -> tensor<8x64xf32>
  %4 = arith.mulf %x, %s : tensor<8x64xf32>
  return %3, %4 : tensor<8x64xf32>, tensor<8x64xf32>
}
