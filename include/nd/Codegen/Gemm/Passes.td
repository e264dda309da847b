//===- Passes.td - Forming matrix products ------------------*- tablegen -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_CODEGEN_GEMM_PASSES_TD
#define ND_CODEGEN_GEMM_PASSES_TD

include "mlir/Pass/PassBase.td"

def NDFormGemms : Pass<"nd-form-gemms", "::mlir::func::FuncOp"> {
  let summary = "turns nd.dot_general into nd.gemm";
  let description = [{
    Each `nd.dot_general` becomes one `nd.gemm`: batch dimensions collapse into one, leading free dimensions into M,
    trailing ones into N. Transposes of operands become flags where the operand's dimensions are batch, then free and
    contracted in either order; what is left of a transpose stays an operation, a view of strided memory in most cases.
    A transpose that swaps the two sides of the result exchanges the operands instead, so that a weight's gradient is
    written in the weight's own layout.

    A bias row added to the product, and another product added to it, become the bias and the accumulator.

    After the pass no `nd.dot_general` is left.

    ```mlir
    %0 = nd.dot_general %x, %w contract = [2] x [1] : tensor<2x8x16xf32>, tensor<32x16xf32> -> tensor<2x8x32xf32>
    %1 = nd.broadcast %b dims = [2] : tensor<32xf32> -> tensor<2x8x32xf32>
    %2 = arith.addf %0, %1 : tensor<2x8x32xf32>
    // becomes
    %3 = nd.reshape %x : tensor<2x8x16xf32> -> tensor<16x16xf32>
    %4 = nd.gemm %3, %w transposed bias(%b : tensor<32xf32>) : tensor<16x16xf32>, tensor<32x16xf32> -> tensor<16x32xf32>
    %5 = nd.reshape %4 : tensor<16x32xf32> -> tensor<2x8x32xf32>
    ```
  }];
  let dependentDialects = ["::nd::NDDialect"];
}

#endif // ND_CODEGEN_GEMM_PASSES_TD
