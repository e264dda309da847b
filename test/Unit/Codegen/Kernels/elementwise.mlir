// sizes: N=1
// sizes: N=7
// sizes: N=64
// sizes: N=1000
func.func @math(%x: tensor<${N}xf32> {test.nan}, %p: tensor<${N}xf32> {test.positive}) -> (tensor<${N}xf32>, tensor<${N}xf32>, tensor<${N}xf32>, tensor<${N}xf32>, tensor<${N}xf32>, tensor<${N}xf32>, tensor<${N}xf32>, tensor<${N}xf32>) attributes {test.tolerance = 1.0e-6} {
  %0 = math.exp %x : tensor<${N}xf32>
  %1 = math.tanh %x : tensor<${N}xf32>
  %2 = math.erf %x : tensor<${N}xf32>
  %3 = math.log %p : tensor<${N}xf32>
  %4 = math.sqrt %p : tensor<${N}xf32>
  %5 = math.absf %x : tensor<${N}xf32>
  %6 = math.sin %p : tensor<${N}xf32>
  %7 = math.powf %p, %p : tensor<${N}xf32>
  return %0, %1, %2, %3, %4, %5, %6, %7 : tensor<${N}xf32>, tensor<${N}xf32>, tensor<${N}xf32>, tensor<${N}xf32>, tensor<${N}xf32>, tensor<${N}xf32>, tensor<${N}xf32>, tensor<${N}xf32>
}
// -----
// sizes: S=0.001 N=300
// sizes: S=1.0 N=300
// sizes: S=20.0 N=300
func.func @ranges(%x: tensor<${N}xf32> {test.scale = ${S} : f64}) -> (tensor<${N}xf32>, tensor<${N}xf32>, tensor<${N}xf32>, tensor<${N}xf32>, tensor<${N}xf32>, tensor<${N}xf32>) {
  %0 = math.tanh %x : tensor<${N}xf32>
  %1 = math.erf %x : tensor<${N}xf32>
  %2 = math.absf %x : tensor<${N}xf32>
  %3 = math.log1p %2 : tensor<${N}xf32>
  %n = arith.negf %2 : tensor<${N}xf32>
  %4 = math.expm1 %n : tensor<${N}xf32>
  %5 = math.exp %x : tensor<${N}xf32>
  %6 = math.log %2 : tensor<${N}xf32>
  return %0, %1, %3, %4, %5, %6 : tensor<${N}xf32>, tensor<${N}xf32>, tensor<${N}xf32>, tensor<${N}xf32>, tensor<${N}xf32>, tensor<${N}xf32>
}
// -----
// Relative accuracy: the ratio to the argument is of size one.
// sizes: N=500
func.func @small(%x: tensor<${N}xf32> {test.scale = 0.0001 : f64}) -> (tensor<${N}xf32>, tensor<${N}xf32>, tensor<${N}xf32>, tensor<${N}xf32>) {
  %0 = math.tanh %x : tensor<${N}xf32>
  %1 = math.erf %x : tensor<${N}xf32>
  %2 = math.log1p %x : tensor<${N}xf32>
  %3 = math.expm1 %x : tensor<${N}xf32>
  %4 = arith.divf %0, %x : tensor<${N}xf32>
  %5 = arith.divf %1, %x : tensor<${N}xf32>
  %6 = arith.divf %2, %x : tensor<${N}xf32>
  %7 = arith.divf %3, %x : tensor<${N}xf32>
  return %4, %5, %6, %7 : tensor<${N}xf32>, tensor<${N}xf32>, tensor<${N}xf32>, tensor<${N}xf32>
}
// -----
// sizes: R=1 C=1
// sizes: R=3 C=5
// sizes: R=5 C=33
// sizes: R=2 C=64
func.func @mixed(%x: tensor<${R}x${C}xf32> {test.nan}, %b: tensor<${C}xf32>, %i: tensor<${R}x${C}xi64>, %m: tensor<${R}x${C}xi1>, %s: tensor<f32>) -> (tensor<${R}x${C}xf32>, tensor<${R}x${C}xi1>, tensor<${R}x${C}xi64>, tensor<${R}x${C}xf32>) {
  %bb = nd.broadcast %b dims = [1] : tensor<${C}xf32> -> tensor<${R}x${C}xf32>
  %sb = nd.broadcast %s dims = [] : tensor<f32> -> tensor<${R}x${C}xf32>
  %0 = arith.addf %x, %bb : tensor<${R}x${C}xf32>
  %1 = arith.maximumf %0, %sb : tensor<${R}x${C}xf32>
  %2 = arith.cmpf ogt, %x, %sb : tensor<${R}x${C}xf32>
  %3 = arith.andi %2, %m : tensor<${R}x${C}xi1>
  %j = nd.iota dim = 1 : tensor<${R}x${C}xi64>
  %4 = arith.addi %i, %j : tensor<${R}x${C}xi64>
  %5 = arith.select %3, %4, %i : tensor<${R}x${C}xi1>, tensor<${R}x${C}xi64>
  %6 = arith.sitofp %5 : tensor<${R}x${C}xi64> to tensor<${R}x${C}xf32>
  %7 = arith.minimumf %6, %1 : tensor<${R}x${C}xf32>
  return %1, %3, %5, %7 : tensor<${R}x${C}xf32>, tensor<${R}x${C}xi1>, tensor<${R}x${C}xi64>, tensor<${R}x${C}xf32>
}
// -----
// sizes: B=1 S=1 C=1
// sizes: B=2 S=3 C=37
// sizes: B=4 S=8 C=96
func.func @gelu(%x: tensor<${B}x${S}x${C}xf32>, %b: tensor<${C}xf32>) -> tensor<${B}x${S}x${C}xf32> {
  %h = arith.constant dense<0.5> : tensor<${B}x${S}x${C}xf32>
  %k0 = arith.constant dense<0.797884583> : tensor<${B}x${S}x${C}xf32>
  %k1 = arith.constant dense<0.044715> : tensor<${B}x${S}x${C}xf32>
  %one = arith.constant dense<1.0> : tensor<${B}x${S}x${C}xf32>
  %bb = nd.broadcast %b dims = [2] : tensor<${C}xf32> -> tensor<${B}x${S}x${C}xf32>
  %v = arith.addf %x, %bb : tensor<${B}x${S}x${C}xf32>
  %v2 = arith.mulf %v, %v : tensor<${B}x${S}x${C}xf32>
  %v3 = arith.mulf %v2, %v : tensor<${B}x${S}x${C}xf32>
  %w = arith.mulf %v3, %k1 : tensor<${B}x${S}x${C}xf32>
  %u = arith.addf %v, %w : tensor<${B}x${S}x${C}xf32>
  %ku = arith.mulf %u, %k0 : tensor<${B}x${S}x${C}xf32>
  %t = math.tanh %ku : tensor<${B}x${S}x${C}xf32>
  %t1 = arith.addf %t, %one : tensor<${B}x${S}x${C}xf32>
  %hv = arith.mulf %v, %h : tensor<${B}x${S}x${C}xf32>
  %y = arith.mulf %hv, %t1 : tensor<${B}x${S}x${C}xf32>
  return %y : tensor<${B}x${S}x${C}xf32>
}
// -----
func.func @scalars(%n: tensor<f32> {test.positive}, %c: tensor<f32> {test.positive}) -> (tensor<f32>, tensor<i1>) {
  %s = math.sqrt %n : tensor<f32>
  %e = arith.constant dense<1.0e-6> : tensor<f32>
  %one = arith.constant dense<1.0> : tensor<f32>
  %d = arith.addf %s, %e : tensor<f32>
  %q = arith.divf %c, %d : tensor<f32>
  %m = arith.minimumf %q, %one : tensor<f32>
  %f = arith.cmpf ord, %s, %s : tensor<f32>
  return %m, %f : tensor<f32>, tensor<i1>
}
// -----
// sizes: N=1 M=3
// sizes: N=33 M=5
// sizes: N=130 M=64
func.func @adamw(%p: tensor<${N}x${M}xf32>, %g: tensor<${N}x${M}xf32>, %m: tensor<${N}x${M}xf32>, %v: tensor<${N}x${M}xf32> {test.positive}, %lr: tensor<f32> {test.positive}, %b1: tensor<f32> {test.positive}, %b2: tensor<f32> {test.positive}, %s: tensor<f32> {test.positive}, %f: tensor<i1>) -> (tensor<${N}x${M}xf32>, tensor<${N}x${M}xf32>, tensor<${N}x${M}xf32>) {
  %a, %b, %c = nd.adamw %p grad %g moments %m, %v scalars %lr, %b1, %b2, %s, %f {beta1 = 0.9, beta2 = 0.999, eps = 1.0e-8, weight_decay = 0.01} : tensor<${N}x${M}xf32>, tensor<${N}x${M}xf32>, tensor<f32>, tensor<i1>
  return %a, %b, %c : tensor<${N}x${M}xf32>, tensor<${N}x${M}xf32>, tensor<${N}x${M}xf32>
}
// -----
// The factor that GELU's gradient has: a tanh that is only shifted and squared.
// sizes: N=300
func.func @gelu_factor(%u: tensor<${N}xf32> {test.scale = 3.0 : f64}) -> (tensor<${N}xf32>, tensor<${N}xf32>) {
  %one = arith.constant dense<1.0> : tensor<${N}xf32>
  %t = math.tanh %u : tensor<${N}xf32>
  %p = arith.addf %t, %one : tensor<${N}xf32>
  %q = arith.mulf %t, %t : tensor<${N}xf32>
  %d = arith.subf %one, %q : tensor<${N}xf32>
  return %p, %d : tensor<${N}xf32>, tensor<${N}xf32>
}
