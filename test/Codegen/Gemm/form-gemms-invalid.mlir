// RUN: nd-opt %s -nd-form-gemms -verify-diagnostics

func.func @double(%x: tensor<4x8xf64>, %w: tensor<8x8xf64>) -> tensor<4x8xf64> {
  // expected-error @below {{a product of 'f64' cannot be computed; cast its operands to f32, bf16 or f16}}
  %0 = nd.dot_general %x, %w contract = [1] x [0] : tensor<4x8xf64>, tensor<8x8xf64> -> tensor<4x8xf64>
  return %0 : tensor<4x8xf64>
}
