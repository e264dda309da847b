// RUN: nd-opt %s -nd-to-rt -split-input-file -verify-diagnostics

func.func @loose(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{cannot run on buffers by itself: nd-form-gemms and nd-form-kernels must have put it into a product or a kernel}}
  %0 = arith.addf %x, %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// expected-error@+1 {{a program is made of one function, but the module has 2}}
module {
  func.func @a() { return }
  func.func @b() { return }
}
