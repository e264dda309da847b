// RUN: nd-opt %s -split-input-file -verify-diagnostics

rt.program @p {
  // expected-error@+1 {{allocates a row-major buffer}}
  %x = rt.buffer : memref<4x8xf32, strided<[16, 1]>>
}

// -----

rt.program @p {
  %x = rt.buffer : memref<4x8xf32>
  // expected-error@+1 {{reaches element 33 of a source of 32}}
  %v = rt.view %x : memref<4x8xf32> to memref<4x8xf32, strided<[8, 1], offset: 1>>
}

// -----

rt.program @p {
  %x = rt.buffer : memref<4x8xf32>
  %v = rt.view %x : memref<4x8xf32> to memref<8x4xf32, strided<[1, 8]>>
  // expected-error@+1 {{source must be an rt.tensor, rt.buffer or rt.constant}}
  %u = rt.view %v : memref<8x4xf32, strided<[1, 8]>> to memref<4x8xf32>
}

// -----

rt.program @p {
  %a = rt.buffer : memref<4x8xf32>
  %c = rt.buffer : memref<4x4xf32>
  // expected-error@+1 {{shapes do not fit [M, K] x [K, N] = [M, N]}}
  rt.gemm %a, %a into %c : memref<4x8xf32>, memref<4x8xf32> into memref<4x4xf32>
}

// -----

rt.program @p {
  %r = rt.buffer : memref<64xf32>
  %a = rt.view %r : memref<64xf32> to memref<4x4xf32, strided<[8, 2]>>
  %b = rt.buffer : memref<4x4xf32>
  // expected-error@+1 {{a needs an inner stride of 1}}
  rt.gemm %a, %b into %b : memref<4x4xf32, strided<[8, 2]>>, memref<4x4xf32> into memref<4x4xf32>
}

// -----

rt.program @p {
  %x = rt.buffer : memref<4xf32>
  // expected-error@+1 {{must be waited for exactly once}}
  %e = rt.collective_start all_reduce ins(%x : memref<4xf32>) outs(%x : memref<4xf32>) axes = ["dp"] reduction = sum name = "x"
}

// -----

rt.program @p {
  %x = rt.tensor "weight" "w" : memref<4xf32>
  // expected-error@+1 {{a weight named 'w' exists already}}
  %y = rt.tensor "weight" "w" : memref<4xf32>
}

// -----

rt.program @p {
  // expected-error@+1 {{is not an operation of the rt dialect}}
  %c = arith.constant 1 : i32
}

// -----

rt.program @p {
  %x = rt.buffer : memref<4xf32>
  // expected-error@+1 {{there is no rt.kernel named @k}}
  rt.launch @k ins(%x : memref<4xf32>) outs(%x : memref<4xf32>) in_place = [-1]
}

// -----

rt.kernel @k inputs [memref<4xf32>] results [memref<4xf32>] in_place = [0] {
^bb0(%x: tensor<4xf32>):
  %r = nd.kernel(%x) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4xf32>):
    nd.yield %a : tensor<4xf32>
  }
}
rt.program @p {
  %x = rt.buffer : memref<8xf32>
  // expected-error@+1 {{buffer 0 is 'memref<8xf32>', @k takes 'memref<4xf32>'}}
  rt.launch @k ins(%x : memref<8xf32>) outs() in_place = [0]
}

// -----

// expected-error@+1 {{result 0 is in place of operand 1, which does not exist}}
rt.kernel @k inputs [memref<4xf32>] results [memref<4xf32>] in_place = [1] {
^bb0(%x: tensor<4xf32>):
  %r = nd.kernel(%x) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4xf32>):
    nd.yield %a : tensor<4xf32>
  }
}

// -----

rt.program @rows {
  %x = rt.buffer : memref<2x8xf32>
  // expected-error@+1 {{slices contiguous buffers of 3 rows, but one is 'memref<2x8xf32>'}}
  rt.repeat count = 3 sliced(%x : memref<2x8xf32>) {
  ^bb0(%row: memref<8xf32>):
  }
}

// -----

rt.program @row_type {
  %x = rt.buffer : memref<3x8xf32>
  // expected-error@+1 {{has a region that takes 'memref<4xf32>' as a row of 'memref<3x8xf32>'}}
  rt.repeat count = 3 sliced(%x : memref<3x8xf32>) {
  ^bb0(%row: memref<4xf32>):
  }
}

// -----

rt.program @row_count {
  %x = rt.buffer : memref<3x8xf32>
  // expected-error@+1 {{has 1 sliced buffers, but its region takes 0 rows}}
  rt.repeat count = 3 sliced(%x : memref<3x8xf32>) {
  }
}

// -----

rt.program @memory_per_turn {
  rt.repeat count = 3 {
    // expected-error@+1 {{is declared inside of a loop: memory belongs to the whole program}}
    %x = rt.buffer : memref<8xf32>
  }
}
