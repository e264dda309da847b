// What one block of GPT-2 124M at batch 4 x 64 launches beside its products, the loss, and the update of a table.
func.func @gelu(%x: tensor<256x3072xf32>) -> tensor<256x3072xf32> {
  %h = arith.constant dense<0.5> : tensor<256x3072xf32>
  %k0 = arith.constant dense<0.797884583> : tensor<256x3072xf32>
  %k1 = arith.constant dense<0.044715> : tensor<256x3072xf32>
  %one = arith.constant dense<1.0> : tensor<256x3072xf32>
  %v2 = arith.mulf %x, %x : tensor<256x3072xf32>
  %v3 = arith.mulf %v2, %x : tensor<256x3072xf32>
  %w = arith.mulf %v3, %k1 : tensor<256x3072xf32>
  %u = arith.addf %x, %w : tensor<256x3072xf32>
  %ku = arith.mulf %u, %k0 : tensor<256x3072xf32>
  %t = math.tanh %ku : tensor<256x3072xf32>
  %t1 = arith.addf %t, %one : tensor<256x3072xf32>
  %hv = arith.mulf %x, %h : tensor<256x3072xf32>
  %y = arith.mulf %hv, %t1 : tensor<256x3072xf32>
  return %y : tensor<256x3072xf32>
}
func.func @add_layer_norm(%x: tensor<256x768xf32>, %a: tensor<256x768xf32>, %w: tensor<768xf32>, %b: tensor<768xf32>) -> (tensor<256x768xf32>, tensor<256x768xf32>, tensor<256xf32>, tensor<256xf32>) {
  %s = arith.addf %x, %a : tensor<256x768xf32>
  %y, %m, %r = nd.layer_norm %s, %w, %b eps = 1.0e-5 : tensor<256x768xf32>, tensor<768xf32>, tensor<768xf32> -> tensor<256xf32>
  return %s, %y, %m, %r : tensor<256x768xf32>, tensor<256x768xf32>, tensor<256xf32>, tensor<256xf32>
}
func.func @layer_norm_grad(%dy: tensor<256x768xf32>, %x: tensor<256x768xf32>, %w: tensor<768xf32>, %mean: tensor<256xf32>, %rstd: tensor<256xf32>, %res: tensor<256x768xf32>) -> (tensor<256x768xf32>, tensor<768xf32>, tensor<768xf32>) {
  %n = arith.constant dense<768.0> : tensor<256xf32>
  %mb = nd.broadcast %mean dims = [0] : tensor<256xf32> -> tensor<256x768xf32>
  %rb = nd.broadcast %rstd dims = [0] : tensor<256xf32> -> tensor<256x768xf32>
  %wb = nd.broadcast %w dims = [1] : tensor<768xf32> -> tensor<256x768xf32>
  %d = arith.subf %x, %mb : tensor<256x768xf32>
  %h = arith.mulf %d, %rb : tensor<256x768xf32>
  %g = arith.mulf %dy, %wb : tensor<256x768xf32>
  %gh = arith.mulf %g, %h : tensor<256x768xf32>
  %s1 = nd.reduce sum %g dims = [1] : tensor<256x768xf32> -> tensor<256xf32>
  %s2 = nd.reduce sum %gh dims = [1] : tensor<256x768xf32> -> tensor<256xf32>
  %m1 = arith.divf %s1, %n : tensor<256xf32>
  %m2 = arith.divf %s2, %n : tensor<256xf32>
  %m1b = nd.broadcast %m1 dims = [0] : tensor<256xf32> -> tensor<256x768xf32>
  %m2b = nd.broadcast %m2 dims = [0] : tensor<256xf32> -> tensor<256x768xf32>
  %t0 = arith.subf %g, %m1b : tensor<256x768xf32>
  %t1 = arith.mulf %h, %m2b : tensor<256x768xf32>
  %t2 = arith.subf %t0, %t1 : tensor<256x768xf32>
  %t3 = arith.mulf %t2, %rb : tensor<256x768xf32>
  %dx = arith.addf %res, %t3 : tensor<256x768xf32>
  %p = arith.mulf %dy, %h : tensor<256x768xf32>
  %dw = nd.reduce sum %p dims = [0] : tensor<256x768xf32> -> tensor<768xf32>
  %db = nd.reduce sum %dy dims = [0] : tensor<256x768xf32> -> tensor<768xf32>
  return %dx, %dw, %db : tensor<256x768xf32>, tensor<768xf32>, tensor<768xf32>
}
func.func @cross_entropy(%x: tensor<256x50257xf32>, %l: tensor<256xi64>, %g: tensor<256xf32>) -> (tensor<256xf32>, tensor<256x50257xf32>) {
  %a, %b = nd.softmax_cross_entropy %x, %l ignore = -100 : tensor<256x50257xf32>, tensor<256xi64> -> tensor<256xf32>
  %d = nd.softmax_cross_entropy_grad %x, %l, %b, %g ignore = -100 : tensor<256x50257xf32>, tensor<256xi64>, tensor<256xf32>
  return %a, %d : tensor<256xf32>, tensor<256x50257xf32>
}
func.func @column_sum(%x: tensor<256x2304xf32>) -> tensor<2304xf32> {
  %0 = nd.reduce sum %x dims = [0] : tensor<256x2304xf32> -> tensor<2304xf32>
  return %0 : tensor<2304xf32>
}
func.func @sum_of_squares(%x: tensor<3072x768xf32>) -> tensor<f32> {
  %q = arith.mulf %x, %x : tensor<3072x768xf32>
  %0 = nd.reduce sum %q dims = [0, 1] : tensor<3072x768xf32> -> tensor<f32>
  return %0 : tensor<f32>
}
func.func @adamw(%p: tensor<50257x768xf32>, %g: tensor<50257x768xf32>, %m: tensor<50257x768xf32>, %v: tensor<50257x768xf32>, %lr: tensor<f32>, %b1: tensor<f32>, %b2: tensor<f32>, %s: tensor<f32>, %f: tensor<i1>) -> (tensor<50257x768xf32>, tensor<50257x768xf32>, tensor<50257x768xf32>) {
  %a, %b, %c = nd.adamw %p grad %g moments %m, %v scalars %lr, %b1, %b2, %s, %f {beta1 = 0.9, beta2 = 0.999, eps = 1.0e-8, weight_decay = 0.01} : tensor<50257x768xf32>, tensor<50257x768xf32>, tensor<f32>, tensor<i1>
  return %a, %b, %c : tensor<50257x768xf32>, tensor<50257x768xf32>, tensor<50257x768xf32>
}
