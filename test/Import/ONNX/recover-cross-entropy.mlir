// RUN: nd-opt %s -nd-recover-composites -canonicalize | FileCheck %s

// -log_softmax(x)[label], zero where the label is -100.
// CHECK-LABEL: func @masked
// CHECK-SAME: %[[X:.*]]: tensor<6x5xf32>, %[[L:.*]]: tensor<6xi64>
// CHECK: %[[LOSS:.*]], %{{.*}} = nd.softmax_cross_entropy %[[X]], %[[L]] ignore = -100
// CHECK-NEXT: return %[[LOSS]]
func.func @masked(%x: tensor<6x5xf32>, %labels: tensor<6xi64>) -> tensor<6xf32> {
  %ignored = arith.constant dense<-100> : tensor<6xi64>
  %zero = arith.constant dense<0> : tensor<6xi64>
  %none = arith.constant dense<0.0> : tensor<6xf32>
  %max = nd.reduce max %x dims = [1] : tensor<6x5xf32> -> tensor<6xf32>
  %maxes = nd.broadcast %max dims = [0] : tensor<6xf32> -> tensor<6x5xf32>
  %shifted = arith.subf %x, %maxes : tensor<6x5xf32>
  %exp = math.exp %shifted : tensor<6x5xf32>
  %sum = nd.reduce sum %exp dims = [1] : tensor<6x5xf32> -> tensor<6xf32>
  %log = math.log %sum : tensor<6xf32>
  %logs = nd.broadcast %log dims = [0] : tensor<6xf32> -> tensor<6x5xf32>
  %logp = arith.subf %shifted, %logs : tensor<6x5xf32>
  %valid = arith.cmpi ne, %labels, %ignored : tensor<6xi64>
  %safe = arith.select %valid, %labels, %zero : tensor<6xi1>, tensor<6xi64>
  %index = nd.reshape %safe : tensor<6xi64> -> tensor<6x1xi64>
  %picked = nd.take_along %logp[%index] dim = 1 : tensor<6x5xf32>, tensor<6x1xi64> -> tensor<6x1xf32>
  %row = nd.reshape %picked : tensor<6x1xf32> -> tensor<6xf32>
  %loss = arith.negf %row : tensor<6xf32>
  %y = arith.select %valid, %loss, %none : tensor<6xi1>, tensor<6xf32>
  return %y : tensor<6xf32>
}
