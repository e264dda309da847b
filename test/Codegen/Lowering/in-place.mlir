// RUN: nd-opt %s -nd-to-rt -split-input-file | FileCheck %s

// A state is updated in the argument's tensor; the gradient dies and could serve too, but the state's place is fixed.
// CHECK-LABEL: rt.program @update
// CHECK-NEXT: %[[W:.*]] = rt.tensor "weight" "w" : memref<8xf32>
// CHECK-NEXT: %[[G:.*]] = rt.tensor "input" "g" : memref<8xf32>
// CHECK-NOT: rt.tensor
// CHECK: rt.launch @kernel0 ins(%[[W]], %[[G]] : {{.*}}) outs() in_place = [0]
// CHECK-NOT: rt.copy
func.func @update(%w: tensor<8xf32> {nd.kind = "weight", nd.name = "w"}, %g: tensor<8xf32> {nd.kind = "input", nd.name = "g"})
    -> (tensor<8xf32> {nd.kind = "weight", nd.name = "w"}) {
  %0 = nd.kernel(%w, %g) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32> {
  ^bb0(%a: tensor<8xf32>, %b: tensor<8xf32>):
    %1 = arith.subf %a, %b : tensor<8xf32>
    nd.yield %1 : tensor<8xf32>
  }
  return %0 : tensor<8xf32>
}

// -----

// The old value is read after the update: the new one waits in a temporary and is copied at the end.
// CHECK-LABEL: rt.program @late_reader
func.func @late_reader(%w: tensor<4x4xf32> {nd.kind = "weight", nd.name = "w"}, %g: tensor<4x4xf32>)
    -> (tensor<4x4xf32> {nd.kind = "weight", nd.name = "w"}, tensor<4x4xf32>) {
  // CHECK: %[[W:.*]] = rt.tensor "weight" "w"
  // CHECK: %[[NEW:.*]] = rt.buffer : memref<4x4xf32>
  // CHECK: rt.launch @kernel0 ins(%[[W]], {{.*}}) outs(%[[NEW]] : memref<4x4xf32>) in_place = [-1]
  // CHECK: rt.gemm %[[W]], %[[NEW]]
  // CHECK: rt.copy %[[NEW]] to %[[W]]
  %0 = nd.kernel(%w, %g) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32> {
  ^bb0(%a: tensor<4x4xf32>, %b: tensor<4x4xf32>):
    %1 = arith.subf %a, %b : tensor<4x4xf32>
    nd.yield %1 : tensor<4x4xf32>
  }
  %2 = nd.gemm %w, %0 : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  return %0, %2 : tensor<4x4xf32>, tensor<4x4xf32>
}

// -----

// Two states exchange their values.
// CHECK-LABEL: rt.program @swap
func.func @swap(%a: tensor<4xf32> {nd.kind = "weight", nd.name = "a"}, %b: tensor<4xf32> {nd.kind = "weight", nd.name = "b"})
    -> (tensor<4xf32> {nd.kind = "weight", nd.name = "a"}, tensor<4xf32> {nd.kind = "weight", nd.name = "b"}) {
  // CHECK: %[[A:.*]] = rt.tensor "weight" "a"
  // CHECK: %[[B:.*]] = rt.tensor "weight" "b"
  // CHECK-DAG: rt.copy %[[B]] to %[[OLDB:[0-9]+]]
  // CHECK-DAG: rt.copy %[[A]] to %[[OLDA:[0-9]+]]
  // CHECK: rt.copy %[[OLDB]] to %[[A]]
  // CHECK: rt.copy %[[OLDA]] to %[[B]]
  return %b, %a : tensor<4xf32>, tensor<4xf32>
}

// -----

// A chain of residual additions has one buffer; the value that another reader needs later has its own.
// CHECK-LABEL: rt.program @chain
func.func @chain(%x: tensor<4x4xf32>, %w: tensor<4x4xf32>) -> tensor<4x4xf32> {
  // CHECK: %[[OUT:.*]] = rt.tensor output "output" "result0"
  // CHECK: rt.gemm {{.*}} into %[[H:.*]] :
  // CHECK: rt.gemm %[[H]], {{.*}} into %[[Y:.*]] :
  // CHECK: rt.launch @kernel0 ins(%[[H]], %[[Y]] : {{.*}}) outs() in_place = [1]
  %0 = nd.gemm %x, %w : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  %1 = nd.gemm %0, %w : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  %2 = nd.kernel(%0, %1) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32> {
  ^bb0(%a: tensor<4x4xf32>, %b: tensor<4x4xf32>):
    %3 = arith.addf %a, %b : tensor<4x4xf32>
    nd.yield %3 : tensor<4x4xf32>
  }
  %4 = nd.gemm %2, %0 accumulate(%2 : tensor<4x4xf32>) : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  // The accumulator is an operand too, so it is copied.
  // CHECK: rt.copy %[[Y]] to %[[OUT]]
  // CHECK: rt.gemm %[[Y]], %[[H]] into %[[OUT]] accumulate
  return %4 : tensor<4x4xf32>
}

// -----

// CHECK-LABEL: rt.program @accumulate
func.func @accumulate(%x: tensor<4x4xf32>, %w: tensor<4x4xf32>) -> tensor<4x4xf32> {
  // CHECK: %[[OUT:.*]] = rt.tensor output "output" "result0"
  // CHECK: rt.gemm {{.*}} into %[[OUT]] :
  // CHECK-NEXT: rt.gemm {{.*}} into %[[OUT]] accumulate
  // CHECK-NOT: rt.copy
  %0 = nd.gemm %x, %w : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  %1 = nd.gemm %w, %x accumulate(%0 : tensor<4x4xf32>) : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  return %1 : tensor<4x4xf32>
}
