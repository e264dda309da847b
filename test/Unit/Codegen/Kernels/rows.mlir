// sizes: R=1 C=1
// sizes: R=1 C=50
// sizes: R=7 C=3
// sizes: R=9 C=32
// sizes: R=5 C=300
func.func @softmax(%x: tensor<${R}x${C}xf32>) -> tensor<${R}x${C}xf32> {
  %y = nd.softmax %x dim = 1 : tensor<${R}x${C}xf32>
  return %y : tensor<${R}x${C}xf32>
}
// -----
// One bad element makes its row NaN, and no other.
func.func @softmax_nan(%x: tensor<6x70xf32> {test.nan}) -> tensor<6x70xf32> {
  %y = nd.softmax %x dim = 1 : tensor<6x70xf32>
  return %y : tensor<6x70xf32>
}
// -----
// sizes: B=1 S=1 C=4
// sizes: B=2 S=3 C=5
// sizes: B=2 S=8 C=64
// sizes: B=3 S=7 C=129
func.func @add_layer_norm(%x: tensor<${B}x${S}x${C}xf32>, %a: tensor<${B}x${S}x${C}xf32>, %w: tensor<${C}xf32>, %b: tensor<${C}xf32>) -> (tensor<${B}x${S}x${C}xf32>, tensor<${B}x${S}x${C}xf32>, tensor<${B}x${S}xf32>, tensor<${B}x${S}xf32>) attributes {test.tolerance = 1.0e-5} {
  %s = arith.addf %x, %a : tensor<${B}x${S}x${C}xf32>
  %y, %m, %r = nd.layer_norm %s, %w, %b eps = 1.0e-5 : tensor<${B}x${S}x${C}xf32>, tensor<${C}xf32>, tensor<${C}xf32> -> tensor<${B}x${S}xf32>
  return %s, %y, %m, %r : tensor<${B}x${S}x${C}xf32>, tensor<${B}x${S}x${C}xf32>, tensor<${B}x${S}xf32>, tensor<${B}x${S}xf32>
}
// -----
// sizes: R=4 C=8
// sizes: R=5 C=63
func.func @rms_norm(%x: tensor<${R}x${C}xf32>, %w: tensor<${C}xf32>) -> (tensor<${R}x${C}xf32>, tensor<${R}xf32>) {
  %y, %r = nd.rms_norm %x, %w eps = 1.0e-6 : tensor<${R}x${C}xf32>, tensor<${C}xf32> -> tensor<${R}xf32>
  return %y, %r : tensor<${R}x${C}xf32>, tensor<${R}xf32>
}
// -----
// The gradient of layer_norm with the weight's and bias's gradients and the residual, in one kernel.
// sizes: R=1 C=1
// sizes: R=3 C=40
// sizes: R=8 C=32
// sizes: R=77 C=65
func.func @layer_norm_grad(%dy: tensor<${R}x${C}xf32>, %x: tensor<${R}x${C}xf32>, %w: tensor<${C}xf32>, %mean: tensor<${R}xf32>, %rstd: tensor<${R}xf32> {test.positive}, %res: tensor<${R}x${C}xf32>) -> (tensor<${R}x${C}xf32>, tensor<${C}xf32>, tensor<${C}xf32>) attributes {test.tolerance = 1.0e-5} {
  %n = arith.constant dense<${C}.0> : tensor<${R}xf32>
  %mb = nd.broadcast %mean dims = [0] : tensor<${R}xf32> -> tensor<${R}x${C}xf32>
  %rb = nd.broadcast %rstd dims = [0] : tensor<${R}xf32> -> tensor<${R}x${C}xf32>
  %wb = nd.broadcast %w dims = [1] : tensor<${C}xf32> -> tensor<${R}x${C}xf32>
  %d = arith.subf %x, %mb : tensor<${R}x${C}xf32>
  %h = arith.mulf %d, %rb : tensor<${R}x${C}xf32>
  %g = arith.mulf %dy, %wb : tensor<${R}x${C}xf32>
  %gh = arith.mulf %g, %h : tensor<${R}x${C}xf32>
  %s1 = nd.reduce sum %g dims = [1] : tensor<${R}x${C}xf32> -> tensor<${R}xf32>
  %s2 = nd.reduce sum %gh dims = [1] : tensor<${R}x${C}xf32> -> tensor<${R}xf32>
  %m1 = arith.divf %s1, %n : tensor<${R}xf32>
  %m2 = arith.divf %s2, %n : tensor<${R}xf32>
  %m1b = nd.broadcast %m1 dims = [0] : tensor<${R}xf32> -> tensor<${R}x${C}xf32>
  %m2b = nd.broadcast %m2 dims = [0] : tensor<${R}xf32> -> tensor<${R}x${C}xf32>
  %t0 = arith.subf %g, %m1b : tensor<${R}x${C}xf32>
  %t1 = arith.mulf %h, %m2b : tensor<${R}x${C}xf32>
  %t2 = arith.subf %t0, %t1 : tensor<${R}x${C}xf32>
  %t3 = arith.mulf %t2, %rb : tensor<${R}x${C}xf32>
  %dx = arith.addf %res, %t3 : tensor<${R}x${C}xf32>
  %p = arith.mulf %dy, %h : tensor<${R}x${C}xf32>
  %dw = nd.reduce sum %p dims = [0] : tensor<${R}x${C}xf32> -> tensor<${C}xf32>
  %db = nd.reduce sum %dy dims = [0] : tensor<${R}x${C}xf32> -> tensor<${C}xf32>
  return %dx, %dw, %db : tensor<${R}x${C}xf32>, tensor<${C}xf32>, tensor<${C}xf32>
}
// -----
// sizes: R=1 C=3
// sizes: R=6 C=50
// sizes: R=5 C=257
func.func @cross_entropy(%x: tensor<${R}x${C}xf32>, %l: tensor<${R}xi64> {test.bound = ${C} : i64}, %g: tensor<${R}xf32>) -> (tensor<${R}xf32>, tensor<${R}x${C}xf32>) {
  %a, %b = nd.softmax_cross_entropy %x, %l ignore = 2 : tensor<${R}x${C}xf32>, tensor<${R}xi64> -> tensor<${R}xf32>
  %d = nd.softmax_cross_entropy_grad %x, %l, %b, %g ignore = 2 : tensor<${R}x${C}xf32>, tensor<${R}xi64>, tensor<${R}xf32>
  return %a, %d : tensor<${R}xf32>, tensor<${R}x${C}xf32>
}
// -----
func.func @cross_entropy_nan(%x: tensor<6x50xf32> {test.nan}, %l: tensor<6xi64> {test.bound = 50 : i64}) -> tensor<6xf32> {
  %a, %b = nd.softmax_cross_entropy %x, %l ignore = -100 : tensor<6x50xf32>, tensor<6xi64> -> tensor<6xf32>
  return %a : tensor<6xf32>
}
// -----
// The label's logit is read where it lies before the row is overwritten.
// sizes: R=5 C=70
func.func @pick(%x: tensor<${R}x${C}xf32>, %l: tensor<${R}x1xi64> {test.bound = ${C} : i64}) -> (tensor<${R}xf32>, tensor<${R}x${C}xf32>) {
  %m = nd.reduce max %x dims = [1] : tensor<${R}x${C}xf32> -> tensor<${R}xf32>
  %p = nd.take_along %x[%l] dim = 1 : tensor<${R}x${C}xf32>, tensor<${R}x1xi64> -> tensor<${R}x1xf32>
  %r = nd.reshape %p : tensor<${R}x1xf32> -> tensor<${R}xf32>
  %d = arith.subf %m, %r : tensor<${R}xf32>
  %mb = nd.broadcast %m dims = [0] : tensor<${R}xf32> -> tensor<${R}x${C}xf32>
  %s = arith.subf %x, %mb : tensor<${R}x${C}xf32>
  %e = math.exp %s : tensor<${R}x${C}xf32>
  return %d, %e : tensor<${R}xf32>, tensor<${R}x${C}xf32>
}
// -----
// sizes: B=1 H=1 S=1 D=2
// sizes: B=2 H=3 S=5 D=8
// sizes: B=2 H=2 S=3 D=64
func.func @rope(%x: tensor<${B}x${H}x${S}x${D}xf32>, %a: tensor<${B}x${S}x${D}xf32>) -> tensor<${B}x${H}x${S}x${D}xf32> {
  %c = math.cos %a : tensor<${B}x${S}x${D}xf32>
  %s = math.sin %a : tensor<${B}x${S}x${D}xf32>
  %cb = nd.broadcast %c dims = [0, 2, 3] : tensor<${B}x${S}x${D}xf32> -> tensor<${B}x${H}x${S}x${D}xf32>
  %sb = nd.broadcast %s dims = [0, 2, 3] : tensor<${B}x${S}x${D}xf32> -> tensor<${B}x${H}x${S}x${D}xf32>
  %p = arith.mulf %x, %cb : tensor<${B}x${H}x${S}x${D}xf32>
  %q = arith.mulf %x, %sb : tensor<${B}x${H}x${S}x${D}xf32>
  %r = arith.subf %p, %q : tensor<${B}x${H}x${S}x${D}xf32>
  return %r : tensor<${B}x${H}x${S}x${D}xf32>
}
// -----
// sizes: B=1 H=1 S=1 D=4 R=2
// sizes: B=2 H=3 S=5 D=16 R=8
// sizes: B=2 H=3 S=5 D=20 R=6
// sizes: B=1 H=2 S=3 D=64 R=32
func.func @rotate(%x: tensor<${B}x${H}x${S}x${D}xf32>, %c: tensor<${B}x${S}x${R}xf32>, %s: tensor<${B}x${S}x${R}xf32>) -> (tensor<${B}x${H}x${S}x${D}xf32>, tensor<${B}x${H}x${S}x${D}xf32>) {
  %a = nd.rope %x, %c, %s : tensor<${B}x${H}x${S}x${D}xf32>, tensor<${B}x${S}x${R}xf32>
  %b = nd.rope %x, %c, %s interleaved : tensor<${B}x${H}x${S}x${D}xf32>, tensor<${B}x${S}x${R}xf32>
  return %a, %b : tensor<${B}x${H}x${S}x${D}xf32>, tensor<${B}x${H}x${S}x${D}xf32>
}
