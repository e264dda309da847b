// bf16 in memory. Conversions give the same bits as the definition: to nearest, to even at a tie, NaN and infinities kept.
// sizes: N=1
// sizes: N=7
// sizes: N=64
// sizes: N=1000
func.func @rounding(%x: tensor<${N}xf32> {test.nan}, %y: tensor<${N}xbf16> {test.nan}, %h: tensor<${N}xf32> {test.scale = 1.0e38 : f64}) -> (tensor<${N}xbf16>, tensor<${N}xf32>, tensor<${N}xbf16>, tensor<${N}xbf16>, tensor<${N}xbf16>) attributes {test.tolerance = 0.0} {
  %0 = arith.truncf %x : tensor<${N}xf32> to tensor<${N}xbf16>
  %1 = arith.extf %y : tensor<${N}xbf16> to tensor<${N}xf32>
  %2 = arith.truncf %h : tensor<${N}xf32> to tensor<${N}xbf16>
  %3 = arith.negf %y : tensor<${N}xbf16>
  %4 = arith.maximumf %0, %y : tensor<${N}xbf16>
  return %0, %1, %2, %3, %4 : tensor<${N}xbf16>, tensor<${N}xf32>, tensor<${N}xbf16>, tensor<${N}xbf16>, tensor<${N}xbf16>
}
// -----
// Arithmetic in f32, rounded after each operation.
// sizes: N=7
// sizes: N=1000
func.func @arithmetic(%x: tensor<${N}xbf16>, %y: tensor<${N}xbf16> {test.positive}) -> (tensor<${N}xbf16>, tensor<${N}xbf16>, tensor<${N}xbf16>, tensor<${N}xbf16>, tensor<${N}xi1>, tensor<${N}xbf16>) attributes {test.tolerance = 4.0e-3} {
  %c = arith.constant dense<0.333984375> : tensor<${N}xbf16>
  %0 = arith.addf %x, %y : tensor<${N}xbf16>
  %1 = arith.mulf %0, %c : tensor<${N}xbf16>
  %2 = arith.divf %x, %y : tensor<${N}xbf16>
  %3 = math.exp %x : tensor<${N}xbf16>
  %4 = arith.cmpf olt, %x, %y : tensor<${N}xbf16>
  %5 = arith.select %4, %x, %y : tensor<${N}xi1>, tensor<${N}xbf16>
  return %0, %1, %2, %3, %4, %5 : tensor<${N}xbf16>, tensor<${N}xbf16>, tensor<${N}xbf16>, tensor<${N}xbf16>, tensor<${N}xi1>, tensor<${N}xbf16>
}
// -----
// sizes: R=5 C=37
// sizes: R=600 C=64
func.func @gelu_and_bias_gradient(%h: tensor<${R}x${C}xbf16>, %g: tensor<${R}x${C}xbf16>) -> (tensor<${R}x${C}xbf16>, tensor<${C}xf32>) attributes {test.tolerance = 4.0e-3} {
  %hf = arith.extf %h : tensor<${R}x${C}xbf16> to tensor<${R}x${C}xf32>
  %gf = arith.extf %g : tensor<${R}x${C}xbf16> to tensor<${R}x${C}xf32>
  %t = math.tanh %hf : tensor<${R}x${C}xf32>
  %m = arith.mulf %gf, %t : tensor<${R}x${C}xf32>
  %0 = arith.truncf %m : tensor<${R}x${C}xf32> to tensor<${R}x${C}xbf16>
  %1 = arith.extf %0 : tensor<${R}x${C}xbf16> to tensor<${R}x${C}xf32>
  %2 = nd.reduce sum %1 dims = [0] : tensor<${R}x${C}xf32> -> tensor<${C}xf32>
  return %0, %2 : tensor<${R}x${C}xbf16>, tensor<${C}xf32>
}
// -----
// Sums of bf16 are sums in f32, rounded once.
// sizes: R=3 C=5
// sizes: R=300 C=70
func.func @sums(%x: tensor<${R}x${C}xbf16>) -> (tensor<${R}xbf16>, tensor<${C}xbf16>, tensor<bf16>, tensor<${R}xbf16>) attributes {test.tolerance = 4.0e-3} {
  %0 = nd.reduce sum %x dims = [1] : tensor<${R}x${C}xbf16> -> tensor<${R}xbf16>
  %1 = nd.reduce sum %x dims = [0] : tensor<${R}x${C}xbf16> -> tensor<${C}xbf16>
  %2 = nd.reduce sum %x dims = [0, 1] : tensor<${R}x${C}xbf16> -> tensor<bf16>
  %3 = nd.reduce max %x dims = [1] : tensor<${R}x${C}xbf16> -> tensor<${R}xbf16>
  return %0, %1, %2, %3 : tensor<${R}xbf16>, tensor<${C}xbf16>, tensor<bf16>, tensor<${R}xbf16>
}
// -----
// sizes: R=4 C=33
// sizes: R=64 C=256
func.func @layer_norm(%x: tensor<${R}x${C}xbf16>, %w: tensor<${C}xbf16>, %b: tensor<${C}xbf16>) -> (tensor<${R}x${C}xbf16>, tensor<${R}xf32>) attributes {test.tolerance = 4.0e-3} {
  %0, %1, %2 = nd.layer_norm %x, %w, %b eps = 1.0e-5 : tensor<${R}x${C}xbf16>, tensor<${C}xbf16>, tensor<${C}xbf16> -> tensor<${R}xf32>
  return %0, %2 : tensor<${R}x${C}xbf16>, tensor<${R}xf32>
}
// -----
// sizes: R=4 C=33
// sizes: R=64 C=256
func.func @softmax(%x: tensor<${R}x${C}xbf16>) -> tensor<${R}x${C}xbf16> attributes {test.tolerance = 4.0e-3} {
  %0 = nd.softmax %x dim = 1 : tensor<${R}x${C}xbf16>
  return %0 : tensor<${R}x${C}xbf16>
}
// -----
func.func @movement(%x: tensor<6x8xbf16>, %p: tensor<bf16>, %i: tensor<5xi64> {test.bound = 6}) -> (tensor<8x6xbf16>, tensor<3x4xbf16>, tensor<8x10xbf16>, tensor<12x8xbf16>, tensor<5x8xbf16>) attributes {test.tolerance = 0.0} {
  %0 = nd.transpose %x permutation = [1, 0] : tensor<6x8xbf16> -> tensor<8x6xbf16>
  %n = arith.negf %0 : tensor<8x6xbf16>
  %1 = nd.slice %x starts = [1, 0] strides = [2, 2] : tensor<6x8xbf16> -> tensor<3x4xbf16>
  %m = arith.negf %1 : tensor<3x4xbf16>
  %2 = nd.pad %x, %p low = [1, 1] high = [1, 1] interior = [0, 0] : tensor<6x8xbf16>, tensor<bf16> -> tensor<8x10xbf16>
  %3 = nd.concat %x, %x dim = 0 : tensor<6x8xbf16>, tensor<6x8xbf16> -> tensor<12x8xbf16>
  %4 = nd.take %x[%i] : tensor<6x8xbf16>, tensor<5xi64> -> tensor<5x8xbf16>
  return %n, %m, %2, %3, %4 : tensor<8x6xbf16>, tensor<3x4xbf16>, tensor<8x10xbf16>, tensor<12x8xbf16>, tensor<5x8xbf16>
}
// -----
func.func @scatter(%i: tensor<9xi64> {test.bound = 4}, %u: tensor<9x37xbf16>) -> tensor<6x37xbf16> attributes {test.tolerance = 1.6e-2} {
  %0 = nd.scatter_add %i, %u : tensor<9xi64>, tensor<9x37xbf16> -> tensor<6x37xbf16>
  return %0 : tensor<6x37xbf16>
}
