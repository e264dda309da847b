// sizes: B=1 S=1 C=1
// sizes: B=2 S=3 C=5
// sizes: B=2 S=50 C=33
// sizes: B=1 S=300 C=200
func.func @columns(%x: tensor<${B}x${S}x${C}xf32>, %y: tensor<${B}x${S}x${C}xf32>) -> (tensor<${C}xf32>, tensor<${C}xf32>, tensor<${S}x${C}xf32>, tensor<${B}x${C}xf32>) attributes {test.tolerance = 1.0e-5} {
  %p = arith.mulf %x, %y : tensor<${B}x${S}x${C}xf32>
  %0 = nd.reduce sum %p dims = [0, 1] : tensor<${B}x${S}x${C}xf32> -> tensor<${C}xf32>
  %1 = nd.reduce max %y dims = [0, 1] : tensor<${B}x${S}x${C}xf32> -> tensor<${C}xf32>
  %2 = nd.reduce sum %y dims = [0] : tensor<${B}x${S}x${C}xf32> -> tensor<${S}x${C}xf32>
  %3 = nd.reduce min %x dims = [1] : tensor<${B}x${S}x${C}xf32> -> tensor<${B}x${C}xf32>
  return %0, %1, %2, %3 : tensor<${C}xf32>, tensor<${C}xf32>, tensor<${S}x${C}xf32>, tensor<${B}x${C}xf32>
}
// -----
// sizes: N=1
// sizes: N=77
// sizes: N=16385
// sizes: N=50000
func.func @total(%x: tensor<${N}xf32>, %i: tensor<${N}xi64> {test.bound = 3 : i64}) -> (tensor<f32>, tensor<f32>, tensor<i64>) attributes {test.tolerance = 1.0e-5} {
  %q = arith.mulf %x, %x : tensor<${N}xf32>
  %0 = nd.reduce sum %q dims = [0] : tensor<${N}xf32> -> tensor<f32>
  %1 = nd.reduce max %x dims = [0] : tensor<${N}xf32> -> tensor<f32>
  %2 = nd.reduce sum %i dims = [0] : tensor<${N}xi64> -> tensor<i64>
  return %0, %1, %2 : tensor<f32>, tensor<f32>, tensor<i64>
}
// -----
func.func @total_nan(%x: tensor<500xf32> {test.nan}, %y: tensor<5x100xf32> {test.nan}) -> (tensor<f32>, tensor<5xf32>, tensor<100xf32>) {
  %0 = nd.reduce max %x dims = [0] : tensor<500xf32> -> tensor<f32>
  %1 = nd.reduce max %y dims = [1] : tensor<5x100xf32> -> tensor<5xf32>
  %2 = nd.reduce min %y dims = [0] : tensor<5x100xf32> -> tensor<100xf32>
  return %0, %1, %2 : tensor<f32>, tensor<5xf32>, tensor<100xf32>
}
// -----
// sizes: A=2 B=3 C=4 D=5
// sizes: A=3 B=1 C=2 D=40
func.func @apart(%x: tensor<${A}x${B}x${C}x${D}xf32>) -> (tensor<${B}x${D}xf32>, tensor<${A}x${C}xf32>, tensor<${A}x${B}xf32>, tensor<${B}x${C}xf32>) {
  %0 = nd.reduce sum %x dims = [0, 2] : tensor<${A}x${B}x${C}x${D}xf32> -> tensor<${B}x${D}xf32>
  %1 = nd.reduce sum %x dims = [1, 3] : tensor<${A}x${B}x${C}x${D}xf32> -> tensor<${A}x${C}xf32>
  %2 = nd.reduce max %x dims = [2, 3] : tensor<${A}x${B}x${C}x${D}xf32> -> tensor<${A}x${B}xf32>
  %3 = nd.reduce sum %x dims = [0, 3] : tensor<${A}x${B}x${C}x${D}xf32> -> tensor<${B}x${C}xf32>
  return %0, %1, %2, %3 : tensor<${B}x${D}xf32>, tensor<${A}x${C}xf32>, tensor<${A}x${B}xf32>, tensor<${B}x${C}xf32>
}
// -----
// A mean over valid rows, of which there may be none.
// sizes: N=9
func.func @mean(%x: tensor<${N}xf32>, %l: tensor<${N}xi64> {test.bound = 4 : i64}) -> (tensor<f32>, tensor<${N}xf32>) {
  %k = arith.constant dense<2> : tensor<${N}xi64>
  %z = arith.constant dense<0.0> : tensor<${N}xf32>
  %one = arith.constant dense<1.0> : tensor<${N}xf32>
  %s1 = arith.constant dense<1.0> : tensor<f32>
  %v = arith.cmpi ne, %l, %k : tensor<${N}xi64>
  %m = arith.select %v, %x, %z : tensor<${N}xi1>, tensor<${N}xf32>
  %c = arith.select %v, %one, %z : tensor<${N}xi1>, tensor<${N}xf32>
  %sum = nd.reduce sum %m dims = [0] : tensor<${N}xf32> -> tensor<f32>
  %count = nd.reduce sum %c dims = [0] : tensor<${N}xf32> -> tensor<f32>
  %safe = arith.maximumf %count, %s1 : tensor<f32>
  %mean = arith.divf %sum, %safe : tensor<f32>
  %g = arith.divf %s1, %safe : tensor<f32>
  %gb = nd.broadcast %g dims = [] : tensor<f32> -> tensor<${N}xf32>
  %d = arith.select %v, %gb, %z : tensor<${N}xi1>, tensor<${N}xf32>
  return %mean, %d : tensor<f32>, tensor<${N}xf32>
}
// -----
// sizes: R=4 C=6
func.func @any(%m: tensor<${R}x${C}xi1>, %i: tensor<${R}x${C}xi64>) -> (tensor<${R}xi1>, tensor<${C}xi1>, tensor<${R}xi64>, tensor<${C}xi64>) {
  %0 = nd.reduce max %m dims = [1] : tensor<${R}x${C}xi1> -> tensor<${R}xi1>
  %1 = nd.reduce min %m dims = [0] : tensor<${R}x${C}xi1> -> tensor<${C}xi1>
  %2 = nd.reduce max %i dims = [1] : tensor<${R}x${C}xi64> -> tensor<${R}xi64>
  %3 = nd.reduce min %i dims = [0] : tensor<${R}x${C}xi64> -> tensor<${C}xi64>
  return %0, %1, %2, %3 : tensor<${R}xi1>, tensor<${C}xi1>, tensor<${R}xi64>, tensor<${C}xi64>
}
