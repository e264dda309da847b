// Movement between elementwise operations stays inside of kernels.
// sizes: A=2 B=3 C=5
// sizes: A=3 B=4 C=40
// sizes: A=1 B=1 C=1
func.func @inside(%x: tensor<${A}x${B}x${C}xf32>) -> (tensor<${B}x${A}x${C}xf32>, tensor<${C}x${B}x${A}xf32>, tensor<${A}x${C}xf32>) {
  %n = arith.negf %x : tensor<${A}x${B}x${C}xf32>
  %t = nd.transpose %n permutation = [1, 0, 2] : tensor<${A}x${B}x${C}xf32> -> tensor<${B}x${A}x${C}xf32>
  %e = math.absf %t : tensor<${B}x${A}x${C}xf32>
  %u = nd.transpose %x permutation = [2, 1, 0] : tensor<${A}x${B}x${C}xf32> -> tensor<${C}x${B}x${A}xf32>
  %f = arith.addf %u, %u : tensor<${C}x${B}x${A}xf32>
  %s = nd.slice %n starts = [0, 0, 0] strides = [1, 1, 1] : tensor<${A}x${B}x${C}xf32> -> tensor<${A}x1x${C}xf32>
  %r = nd.reshape %s : tensor<${A}x1x${C}xf32> -> tensor<${A}x${C}xf32>
  %g = math.exp %r : tensor<${A}x${C}xf32>
  return %e, %f, %g : tensor<${B}x${A}x${C}xf32>, tensor<${C}x${B}x${A}xf32>, tensor<${A}x${C}xf32>
}
// -----
func.func @pad(%x: tensor<2x3x5xf32>, %v: tensor<f32>) -> (tensor<4x3x8xf32>, tensor<2x7x5xf32>, tensor<2x3x11xf32>) {
  %e = math.absf %x : tensor<2x3x5xf32>
  %0 = nd.pad %e, %v low = [1, 0, 1] high = [1, 0, 2] interior = [0, 0, 0] : tensor<2x3x5xf32>, tensor<f32> -> tensor<4x3x8xf32>
  %1 = nd.pad %x, %v low = [0, 1, 0] high = [0, 1, 0] interior = [0, 1, 0] : tensor<2x3x5xf32>, tensor<f32> -> tensor<2x7x5xf32>
  %2 = nd.pad %x, %v low = [0, 0, 1] high = [0, 0, 1] interior = [0, 0, 1] : tensor<2x3x5xf32>, tensor<f32> -> tensor<2x3x11xf32>
  return %0, %1, %2 : tensor<4x3x8xf32>, tensor<2x7x5xf32>, tensor<2x3x11xf32>
}
// -----
func.func @concat(%x: tensor<2x3x5xf32>, %y: tensor<2x3x40xf32>, %z: tensor<2x2x5xf32>) -> (tensor<2x3x45xf32>, tensor<2x5x5xf32>, tensor<2x3x50xf32>) {
  %0 = nd.concat %x, %y dim = 2 : tensor<2x3x5xf32>, tensor<2x3x40xf32> -> tensor<2x3x45xf32>
  %1 = nd.concat %x, %z dim = 1 : tensor<2x3x5xf32>, tensor<2x2x5xf32> -> tensor<2x5x5xf32>
  %a = math.absf %x : tensor<2x3x5xf32>
  %b = arith.negf %y : tensor<2x3x40xf32>
  %2 = nd.concat %a, %b, %x dim = 2 : tensor<2x3x5xf32>, tensor<2x3x40xf32>, tensor<2x3x5xf32> -> tensor<2x3x50xf32>
  return %0, %1, %2 : tensor<2x3x45xf32>, tensor<2x5x5xf32>, tensor<2x3x50xf32>
}
// -----
func.func @reshapes(%x: tensor<6x4x8xf32>, %y: tensor<24x8xf32>) -> (tensor<4x6x8xf32>, tensor<6x32xf32>, tensor<12x2x8xf32>) {
  %n = arith.negf %x : tensor<6x4x8xf32>
  %0 = nd.reshape %n : tensor<6x4x8xf32> -> tensor<24x8xf32>
  %1 = arith.addf %0, %y : tensor<24x8xf32>
  %2 = nd.reshape %1 : tensor<24x8xf32> -> tensor<4x6x8xf32>
  %3 = math.absf %2 : tensor<4x6x8xf32>
  %4 = nd.reshape %n : tensor<6x4x8xf32> -> tensor<6x32xf32>
  %5 = math.exp %4 : tensor<6x32xf32>
  %t = nd.transpose %n permutation = [1, 0, 2] : tensor<6x4x8xf32> -> tensor<4x6x8xf32>
  %6 = nd.reshape %t : tensor<4x6x8xf32> -> tensor<12x2x8xf32>
  %7 = math.floor %6 : tensor<12x2x8xf32>
  return %3, %5, %7 : tensor<4x6x8xf32>, tensor<6x32xf32>, tensor<12x2x8xf32>
}
// -----
// What leaves the function must be in memory.
func.func @constants(%x: tensor<3xf32>) -> (tensor<2x3xf32>, tensor<4x5xi64>, tensor<7xf32>) {
  %0 = nd.broadcast %x dims = [1] : tensor<3xf32> -> tensor<2x3xf32>
  %1 = nd.iota dim = 0 : tensor<4x5xi64>
  %2 = arith.constant dense<2.5> : tensor<7xf32>
  return %0, %1, %2 : tensor<2x3xf32>, tensor<4x5xi64>, tensor<7xf32>
}
