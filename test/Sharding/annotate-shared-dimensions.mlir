// RUN: nd-opt %s --forward-only --shard=tp2 '--annotate=w1=[tp,_]' 2>%t | FileCheck %s
// RUN: FileCheck %s --check-prefix=NOTE <%t
// RUN: nd-opt %s --forward-only --shard=tp2 '--annotate=w1=[tp,_]' '--annotate=w2=[_,tp]' 2>&1 | FileCheck %s --check-prefix=BOTH

// w2 shares w1's dimension 1 and is sharded there: w1 is stored as the user says, and used as the plan says.
// NOTE: warning: weight 'w1': stored as annotated, but used as [_,tp], and exchanged each time
// CHECK: nd.plan = {{.*}}notes = ["weight 'w1': stored as annotated
// CHECK: %[[W1:.*]] = nd.all_to_all %arg1 {{.*}} : tensor<4x16xf32> -> tensor<8x8xf32>
// CHECK: nd.dot_general %arg0, %[[W1]]
// CHECK-NOT: nd.all_to_all

// Both placed: the dimension between them is whole, and the computation follows. The bias of w2 goes with it.
// BOTH-NOT: warning
// BOTH-NOT: notes
// BOTH-NOT: nd.all_to_all
// BOTH: nd.dot_general %{{.*}}, %arg1 {{.*}} tensor<4x4xf32>, tensor<4x16xf32> -> tensor<4x16xf32>
// BOTH: nd.all_reduce
// BOTH: nd.dot_general %{{.*}}, %arg2 {{.*}} tensor<4x16xf32>, tensor<16x3xf32> -> tensor<4x3xf32>
// BOTH: nd.broadcast %arg3 {{.*}} tensor<3xf32>
func.func @forward(%x: tensor<4x8xf32> {nd.kind = "input", nd.name = "in"},
                   %w1: tensor<8x16xf32> {nd.kind = "weight", nd.name = "w1"},
                   %w2: tensor<16x6xf32> {nd.kind = "weight", nd.name = "w2"},
                   %b2: tensor<6xf32> {nd.kind = "weight", nd.name = "b2"})
    -> (tensor<4x6xf32> {nd.kind = "output", nd.name = "out"}) {
  %0 = nd.dot_general %x, %w1 contract = [1] x [0] : tensor<4x8xf32>, tensor<8x16xf32> -> tensor<4x16xf32>
  %1 = nd.dot_general %0, %w2 contract = [1] x [0] : tensor<4x16xf32>, tensor<16x6xf32> -> tensor<4x6xf32>
  %2 = nd.broadcast %b2 dims = [1] : tensor<6xf32> -> tensor<4x6xf32>
  %3 = arith.addf %1, %2 : tensor<4x6xf32>
  return %3 : tensor<4x6xf32>
}
