// RUN: rm -rf %t && nd-compile %s -o %t/prog --dump-stages=%t/stages
// RUN: ls %t/stages | FileCheck %s
// RUN: FileCheck %s --check-prefix=INPUT < %t/stages/00-input.mlir
// RUN: FileCheck %s --check-prefix=PLANNED < %t/stages/*-rt-plan-memory.mlir

// CHECK: 00-input.mlir
// CHECK-NEXT: 01-nd-lower-shard-axes.mlir
// CHECK-NEXT: 02-nd-form-repeat.mlir
// CHECK-NEXT: 03-nd-decompose.mlir
// CHECK: nd-form-gemms.mlir
// CHECK: nd-form-kernels.mlir
// CHECK-NEXT: nd-schedule-collectives.mlir
// CHECK-NEXT: nd-schedule-for-memory.mlir
// CHECK-NEXT: nd-verify-footprint.mlir
// CHECK-NEXT: nd-to-rt.mlir
// CHECK-NEXT: rt-plan-memory.mlir

// INPUT: nd.dot_general
// PLANNED: rt.program @f attributes {arena_bytes = {{[0-9]+}}
// PLANNED: rt.gemm

func.func @f(%x: tensor<4x8xf32>, %w: tensor<6x8xf32>) -> tensor<4x6xf32> {
  %0 = nd.dot_general %x, %w contract = [1] x [1] : tensor<4x8xf32>, tensor<6x8xf32> -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}
