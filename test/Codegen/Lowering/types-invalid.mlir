// RUN: nd-opt %s -nd-to-rt -split-input-file -verify-diagnostics

// expected-error @+1 {{programs do not hold values of type 'tensor<2xcomplex<f32>>'}}
func.func @complex(%x: tensor<2xcomplex<f32>>) -> tensor<2xcomplex<f32>> {
  return %x : tensor<2xcomplex<f32>>
}

// -----

// expected-error @+1 {{programs do not hold values of type 'memref<2xf32>'}}
func.func @memory(%x: memref<2xf32>) {
  return
}

// -----

// expected-error @+1 {{programs do not hold values of type 'tensor<*xf32>'}}
func.func @unranked(%x: tensor<*xf32>) {
  return
}
