// RUN: nd-opt %s -nd-print-sharding-rules -o /dev/null 2>&1 | FileCheck %s

// Factors of composites.
func.func @softmax(%x: tensor<2x8xf32>) {
  // CHECK: remark: ([i0, i1]) -> ([i0, i2]) {i0=2, i1=8, i2=8} need_replication={i1, i2}{{$}}
  %0 = nd.softmax %x dim = 1 : tensor<2x8xf32>
  return
}
func.func @norms(%x: tensor<2x3x8xf32>, %w: tensor<8xf32>) {
  // CHECK: remark: ([i0, i1, i2], [i2], [i2]) -> ([i0, i1, i2], [i0, i1], [i0, i1]) {i0=2, i1=3, i2=8} need_replication={i2}{{$}}
  %0, %mean, %rstd = nd.layer_norm %x, %w, %w eps = 1.0e-5 : tensor<2x3x8xf32>, tensor<8xf32>, tensor<8xf32> -> tensor<2x3xf32>
  // CHECK: remark: ([i0, i1, i2], [i2]) -> ([i0, i1, i2], [i0, i1]) {i0=2, i1=3, i2=8} need_replication={i2}{{$}}
  %1, %r = nd.rms_norm %x, %w eps = 1.0e-5 : tensor<2x3x8xf32>, tensor<8xf32> -> tensor<2x3xf32>
  return
}
func.func @rope(%x: tensor<2x4x3x8xf32>, %c: tensor<2x3x4xf32>) {
  // CHECK: remark: ([i0, i1, i2, i3], [i0, i2, i4], [i0, i2, i5]) -> ([i0, i1, i2, i6]) {i0=2, i1=4, i2=3, i3=8, i4=4, i5=4, i6=8} need_replication={i3, i4, i5, i6} linear={0}{{$}}
  %0 = nd.rope %x, %c, %c : tensor<2x4x3x8xf32>, tensor<2x3x4xf32>
  return
}
func.func @attention(%q: tensor<2x6x5x8xf32>, %k: tensor<2x3x7x8xf32>, %v: tensor<2x3x7x9xf32>, %m: tensor<1x6x5x7xf32>,
                     %p: tensor<2x7xi1>, %o: tensor<2x6x5x9xf32>, %l: tensor<2x6x5xf32>) {
  // Query heads are key heads (i1) times heads of a group (i2); a mask that broadcasts takes no part.
  // CHECK: remark: ([i0, i1*i2, i3, i4], [i0, i1, i5, i6], [i0, i1, i7, i8], [i0, i9], [i10, i1*i2, i11, i12]) -> ([i0, i1*i2, i3, i13], [i0, i1*i2, i3]) {i0=2, i1=3, i2=2, i3=5, i4=8, i5=7, i6=8, i7=7, i8=9, i9=7, i10=1, i11=5, i12=7, i13=9} need_replication={i4, i5, i6, i7, i8, i9, i10, i11, i12, i13}{{$}}
  %0, %lse = nd.attention %q, %k, %v key_padding(%p : tensor<2x7xi1>) mask(%m : tensor<1x6x5x7xf32>) scale = 1.0
      : tensor<2x6x5x8xf32>, tensor<2x3x7x8xf32>, tensor<2x3x7x9xf32> -> tensor<2x6x5x9xf32>, tensor<2x6x5xf32>
  // Gradients of keys and values sum over the group and the queries, which the queries' gradient carries.
  // CHECK: remark: ([i0, i1*i2, i3, i4], [i0, i1, i5, i6], [i0, i1, i7, i8], [i0, i1*i2, i3, i9], [i0, i1*i2, i3], [i0, i1*i2, i3, i10]) -> ([i0, i1*i2, i3, i11], [i0, i1, i12, i13], [i0, i1, i14, i15]) {i0=2, i1=3, i2=2, i3=5, i4=8, i5=7, i6=8, i7=7, i8=9, i9=9, i10=9, i11=8, i12=7, i13=8, i14=7, i15=9} need_replication={i4, i5, i6, i7, i8, i9, i10, i11, i12, i13, i14, i15} summed={i2:1, i3:1, i2:2, i3:2}{{$}}
  %dq, %dk, %dv = nd.attention_grad %q, %k, %v result(%o, %l, %o) scale = 1.0
      : tensor<2x6x5x8xf32>, tensor<2x3x7x8xf32>, tensor<2x3x7x9xf32>, tensor<2x6x5x9xf32>, tensor<2x6x5xf32>, tensor<2x6x5x9xf32>
      -> tensor<2x6x5x8xf32>, tensor<2x3x7x8xf32>, tensor<2x3x7x9xf32>
  return
}
// Four query heads, one of them padding, read slots of key heads: two blocks, each with a slot of its own for a head that
// both read.
func.func @key_map(%q: tensor<2x4x8x8xf32>, %k: tensor<2x4x8x8xf32>, %o: tensor<2x4x8x8xf32>, %l: tensor<2x4x8xf32>) {
  // CHECK: remark: {{.*}} -> ([i0, i1*i2, i4, i{{[0-9]+}}], [i0, i1*i3, i{{[0-9]+}}, i{{[0-9]+}}], [i0, i1*i3, {{.*}}]) {i0=2, i1=2, i2=2, i3=2, i4=8, {{.*}} need_replication={i3, i5, {{.*}} summed={i2:1, i4:1, i2:2, i4:2}{{$}}
  %dq, %dk, %dv = nd.attention_grad %q, %k, %k result(%o, %l, %o) scale = 1.0 causal {kv_map = array<i64: 1, 0, 2, -1>}
      : tensor<2x4x8x8xf32>, tensor<2x4x8x8xf32>, tensor<2x4x8x8xf32>, tensor<2x4x8x8xf32>, tensor<2x4x8xf32>, tensor<2x4x8x8xf32>
      -> tensor<2x4x8x8xf32>, tensor<2x4x8x8xf32>, tensor<2x4x8x8xf32>
  return
}
// In a ring queries and keys are shards of one sequence, and gradients of keys are whole sums for their shard.
func.func @ring(%q: tensor<2x4x8x8xf32>, %k: tensor<2x4x8x8xf32>, %o: tensor<2x4x8x8xf32>, %l: tensor<2x4x8xf32>) {
  // CHECK: remark: ([i0, i1*i2, i3, i4], [i0, i1, i3, i5], {{.*}} -> ([i0, i1*i2, i3, i{{[0-9]+}}], [i0, i1, i3, i{{[0-9]+}}], [i0, i1, i3, i{{[0-9]+}}]) {{.*}} summed={i2:1, i2:2}{{$}}
  %dq, %dk, %dv = nd.attention_grad %q, %k, %k result(%o, %l, %o) scale = 1.0 causal {cp_mode = "ring"}
      : tensor<2x4x8x8xf32>, tensor<2x4x8x8xf32>, tensor<2x4x8x8xf32>, tensor<2x4x8x8xf32>, tensor<2x4x8xf32>, tensor<2x4x8x8xf32>
      -> tensor<2x4x8x8xf32>, tensor<2x4x8x8xf32>, tensor<2x4x8x8xf32>
  return
}
func.func @cross_entropy(%x: tensor<4x9xf32>, %t: tensor<4xi64>, %g: tensor<4xf32>) {
  // CHECK: remark: ([i0, i1], [i0]) -> ([i0], [i0]) {i0=4, i1=9} need_replication={i1}{{$}}
  %losses, %lse = nd.softmax_cross_entropy %x, %t ignore = -100 : tensor<4x9xf32>, tensor<4xi64> -> tensor<4xf32>
  // CHECK: remark: ([i0, i1], [i0], [i0], [i0]) -> ([i0, i1]) {i0=4, i1=9} need_replication={i1} linear={3}{{$}}
  %0 = nd.softmax_cross_entropy_grad %x, %t, %lse, %g ignore = -100 : tensor<4x9xf32>, tensor<4xi64>, tensor<4xf32>
  return
}
// Every leading dimension passes.
func.func @cross_entropy_of_sequences(%x: tensor<2x4x9xf32>, %t: tensor<2x4xi64>, %g: tensor<2x4xf32>) {
  // CHECK: remark: ([i0, i1, i2], [i0, i1]) -> ([i0, i1], [i0, i1]) {i0=2, i1=4, i2=9} need_replication={i2}{{$}}
  %losses, %lse = nd.softmax_cross_entropy %x, %t ignore = -100 : tensor<2x4x9xf32>, tensor<2x4xi64> -> tensor<2x4xf32>
  // CHECK: remark: ([i0, i1, i2], [i0, i1], [i0, i1], [i0, i1]) -> ([i0, i1, i2]) {i0=2, i1=4, i2=9} need_replication={i2} linear={3}{{$}}
  %0 = nd.softmax_cross_entropy_grad %x, %t, %lse, %g ignore = -100 : tensor<2x4x9xf32>, tensor<2x4xi64>, tensor<2x4xf32>
  return
}
func.func @dropout(%x: tensor<2x8xf32>) {
  // CHECK: remark: ([i0, i1]) -> ([i0, i1]) {i0=2, i1=8} linear={0}{{$}}
  %0 = nd.dropout %x p = 0.1 : tensor<2x8xf32>
  return
}
