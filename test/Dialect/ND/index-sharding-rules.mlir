// RUN: nd-opt %s -nd-print-sharding-rules -o /dev/null 2>&1 | FileCheck %s

// Factors of gathers and scatters.
func.func @take(%t: tensor<50x8xf32>, %i: tensor<2x3xi64>) {
  // CHECK: remark: ([i0, i3], [i1, i2]) -> ([i1, i2, i3]) {i0=50, i1=2, i2=3, i3=8} reduction={i0:sum} linear={0}{{$}}
  %0 = nd.take %t[%i] : tensor<50x8xf32>, tensor<2x3xi64> -> tensor<2x3x8xf32>
  return
}
func.func @scatter_add(%i: tensor<2x3xi64>, %u: tensor<2x3x8xf32>, %w: tensor<50x8xf32>) {
  // Dimensions of the indices are summed over; an initial value has to be partial where the result is.
  // CHECK: remark: ([i0, i1], [i0, i1, i3]) -> ([i2, i3]) {i0=2, i1=3, i2=50, i3=8} reduction={i0:sum, i1:sum} linear={1}{{$}}
  %0 = nd.scatter_add %i, %u : tensor<2x3xi64>, tensor<2x3x8xf32> -> tensor<50x8xf32>
  // CHECK: remark: ([i0, i1], [i0, i1, i3], [i2, i3]) -> ([i2, i3]) {i0=2, i1=3, i2=50, i3=8} reduction={i0:sum, i1:sum} linear={1} addends={2}{{$}}
  %1 = nd.scatter_add %i, %u init %w : tensor<50x8xf32> : tensor<2x3xi64>, tensor<2x3x8xf32> -> tensor<50x8xf32>
  return
}
func.func @take_along(%x: tensor<2x8x5xf32>, %i: tensor<2x3x5xi64>) {
  // CHECK: remark: ([i0, i3, i2], [i0, i1, i2]) -> ([i0, i1, i2]) {i0=2, i1=3, i2=5, i3=8} need_replication={i3} linear={0}{{$}}
  %0 = nd.take_along %x[%i] dim = 1 : tensor<2x8x5xf32>, tensor<2x3x5xi64> -> tensor<2x3x5xf32>
  return
}
func.func @scatter_add_along(%i: tensor<2x3xi64>, %u: tensor<2x3xf32>) {
  // CHECK: remark: ([i0, i1], [i0, i1]) -> ([i0, i2]) {i0=2, i1=3, i2=8} reduction={i1:sum} need_replication={i2} linear={1}{{$}}
  %0 = nd.scatter_add_along %i, %u dim = 1 : tensor<2x3xi64>, tensor<2x3xf32> -> tensor<2x8xf32>
  return
}

// Shards are summed over, or handed out; places in a shard pass.
func.func @copies(%x: tensor<7x12x5xf32>) {
  // CHECK: remark: ([i2, i0*i1, i3]) -> ([i2, i4, i1, i3]) {i0=3, i1=4, i2=7, i3=5, i4=2} reduction={i0:sum} need_replication={i4} linear={0}{{$}}
  %0 = nd.sum_copies %x dim = 1 unit = 4 units = 1 groups = [0, 1, 0] : tensor<7x12x5xf32> -> tensor<7x2x4x5xf32>
  // CHECK: remark: ([i2, i4, i1, i3]) -> ([i2, i0*i1, i3]) {i0=3, i1=4, i2=7, i3=5, i4=2} need_replication={i4}{{$}}
  %1 = nd.make_copies %0 dim = 1 unit = 4 units = 1 groups = [0, 1, 0] : tensor<7x2x4x5xf32> -> tensor<7x12x5xf32>
  return
}
