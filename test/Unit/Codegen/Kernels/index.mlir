// sizes: V=1 B=1 S=1 C=1
// sizes: V=11 B=2 S=3 C=5
// sizes: V=50 B=2 S=9 C=96
func.func @embedding(%w: tensor<${V}x${C}xf32>, %p: tensor<${S}x${C}xf32>, %t: tensor<${B}x${S}xi64> {test.bound = ${V} : i64}, %q: tensor<${B}x${S}xi64> {test.bound = ${S} : i64}) -> tensor<${B}x${S}x${C}xf32> {
  %0 = nd.take %w[%t] : tensor<${V}x${C}xf32>, tensor<${B}x${S}xi64> -> tensor<${B}x${S}x${C}xf32>
  %1 = nd.take %p[%q] : tensor<${S}x${C}xf32>, tensor<${B}x${S}xi64> -> tensor<${B}x${S}x${C}xf32>
  %2 = arith.addf %0, %1 : tensor<${B}x${S}x${C}xf32>
  return %2 : tensor<${B}x${S}x${C}xf32>
}
// -----
// sizes: V=1 N=1 C=1
// sizes: V=5 N=20 C=7
// sizes: V=9 N=13 C=130
func.func @scatter(%t: tensor<${N}xi64> {test.bound = ${V} : i64}, %u: tensor<${N}x${C}xf32>, %i: tensor<${V}x${C}xf32>) -> (tensor<${V}x${C}xf32>, tensor<${V}x${C}xf32>, tensor<${V}x${C}xf32>) {
  %0 = nd.scatter_add %t, %u : tensor<${N}xi64>, tensor<${N}x${C}xf32> -> tensor<${V}x${C}xf32>
  %1 = nd.scatter_add %t, %u init %i : tensor<${V}x${C}xf32> : tensor<${N}xi64>, tensor<${N}x${C}xf32> -> tensor<${V}x${C}xf32>
  %2 = nd.scatter_add %t, %u {padding_idx = 0 : i64} : tensor<${N}xi64>, tensor<${N}x${C}xf32> -> tensor<${V}x${C}xf32>
  return %0, %1, %2 : tensor<${V}x${C}xf32>, tensor<${V}x${C}xf32>, tensor<${V}x${C}xf32>
}
// -----
// sizes: A=2 K=5 C=3 M=4
// sizes: A=1 K=1 C=1 M=1
func.func @along(%x: tensor<${A}x${K}x${C}xf32>, %i: tensor<${A}x${M}x${C}xi64> {test.bound = ${K} : i64}, %j: tensor<${A}x${K}x${M}xi64> {test.bound = ${C} : i64}, %u: tensor<${A}x${M}x${C}xf32>) -> (tensor<${A}x${M}x${C}xf32>, tensor<${A}x${K}x${M}xf32>, tensor<${A}x${K}x${C}xf32>) {
  %0 = nd.take_along %x[%i] dim = 1 : tensor<${A}x${K}x${C}xf32>, tensor<${A}x${M}x${C}xi64> -> tensor<${A}x${M}x${C}xf32>
  %1 = nd.take_along %x[%j] dim = 2 : tensor<${A}x${K}x${C}xf32>, tensor<${A}x${K}x${M}xi64> -> tensor<${A}x${K}x${M}xf32>
  %2 = nd.scatter_add_along %i, %u dim = 1 : tensor<${A}x${M}x${C}xi64>, tensor<${A}x${M}x${C}xf32> -> tensor<${A}x${K}x${C}xf32>
  return %0, %1, %2 : tensor<${A}x${M}x${C}xf32>, tensor<${A}x${K}x${M}xf32>, tensor<${A}x${K}x${C}xf32>
}
// -----
// sizes: R=1 C=1 K=1
// sizes: R=5 C=17 K=4
func.func @order(%x: tensor<${R}x${C}xf32>, %y: tensor<${R}x${C}xf32> {test.nan}) -> (tensor<${R}x${K}xf32>, tensor<${R}x${K}xi64>, tensor<${R}xi64>, tensor<${C}xi64>, tensor<${R}x${C}xf32>, tensor<${R}x${C}xf32>, tensor<${R}xi64>) {
  %v, %i = nd.top_k %x : tensor<${R}x${C}xf32> -> tensor<${R}x${K}xf32>, tensor<${R}x${K}xi64>
  %a = nd.arg_max %x dim = 1 : tensor<${R}x${C}xf32> -> tensor<${R}xi64>
  %b = nd.arg_max %x dim = 0 : tensor<${R}x${C}xf32> -> tensor<${C}xi64>
  %c = nd.cumsum %x dim = 1 : tensor<${R}x${C}xf32>
  %d = nd.cumsum %x dim = 0 exclusive reverse : tensor<${R}x${C}xf32>
  %e = nd.arg_max %y dim = 1 : tensor<${R}x${C}xf32> -> tensor<${R}xi64>
  return %v, %i, %a, %b, %c, %d, %e : tensor<${R}x${K}xf32>, tensor<${R}x${K}xi64>, tensor<${R}xi64>, tensor<${C}xi64>, tensor<${R}x${C}xf32>, tensor<${R}x${C}xf32>, tensor<${R}xi64>
}
