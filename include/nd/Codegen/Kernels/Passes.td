//===- Passes.td - Forming kernels --------------------------*- tablegen -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_CODEGEN_KERNELS_PASSES_TD
#define ND_CODEGEN_KERNELS_PASSES_TD

include "mlir/Pass/PassBase.td"

def NDFormKernels : Pass<"nd-form-kernels", "::mlir::func::FuncOp"> {
  let summary = "groups tensor operations into nd.kernel regions, one loop nest each";
  let description = [{
    Expects decomposed local tensors whose contractions are `nd.gemm`. Producers and consumers are merged while the group stays one
    loop nest over rows and columns: elementwise chains, reductions along rows with what feeds and follows them in as many
    stages as they need, reductions over rows (a weight's or bias's gradient) beside them or alone, sums of everything, and
    gathers. Scatters, scans and selections are kernels by themselves. No merge makes two kernels wait for each other.

    Broadcasts, constants of one number and iotas are part of every kernel that reads them. A kernel computes cheap elementwise
    operands again rather than keep another kernel's intermediate in memory. Reshapes, transposes and slices between kernels
    stay outside, as views; so does a concatenation whose parts are written where they end up.

    After the pass, outside of kernels there are only views, concatenations, constants of several numbers, `nd.gemm`,
    `nd.attention` and its gradient, and collectives.

    ```mlir
    %m = nd.reduce max %x dims = [1] : tensor<8x16xf32> -> tensor<8xf32>
    %b = nd.broadcast %m dims = [0] : tensor<8xf32> -> tensor<8x16xf32>
    %s = arith.subf %x, %b : tensor<8x16xf32>
    // becomes
    %s = nd.kernel(%x) : (tensor<8x16xf32>) -> tensor<8x16xf32> {
    ^bb0(%arg0: tensor<8x16xf32>):
      %m = nd.reduce max %arg0 dims = [1] : tensor<8x16xf32> -> tensor<8xf32>
      %b = nd.broadcast %m dims = [0] : tensor<8xf32> -> tensor<8x16xf32>
      %d = arith.subf %arg0, %b : tensor<8x16xf32>
      nd.yield %d : tensor<8x16xf32>
    }
    ```
  }];
  let dependentDialects = ["::nd::NDDialect"];
}

#endif // ND_CODEGEN_KERNELS_PASSES_TD
