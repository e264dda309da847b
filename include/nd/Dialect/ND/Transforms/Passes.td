//===- Passes.td - Passes of the nd dialect -----------------*- tablegen -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_DIALECT_ND_TRANSFORMS_PASSES_TD
#define ND_DIALECT_ND_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def Decompose : Pass<"nd-decompose"> {
  let summary = "replace composites by their definitions";
  let description = [{
    Replaces every operation that has a definition (`DecomposableOpInterface`) by it: `arith`, `math` and structural `nd`
    operations, computed in f32. `nd.attention` and `nd.attention_grad` stay, because the back ends have them as library
    operations that never hold a [S, T] tensor; with `all` they are replaced too, which is how their definitions are tested.

    Runs on plain tensors, after partitioning: an operand or result type with an encoding is an error.

    ```mlir
    %1 = nd.softmax %0 dim = 1 : tensor<2x3xf32>
    // becomes
    %m = nd.reduce max %0 dims = [1] : tensor<2x3xf32> -> tensor<2xf32>
    %b = nd.broadcast %m dims = [0] : tensor<2xf32> -> tensor<2x3xf32>
    %d = arith.subf %0, %b : tensor<2x3xf32>
    %e = math.exp %d : tensor<2x3xf32>
    %s = nd.reduce sum %e dims = [1] : tensor<2x3xf32> -> tensor<2xf32>
    %t = nd.broadcast %s dims = [0] : tensor<2xf32> -> tensor<2x3xf32>
    %1 = arith.divf %e, %t : tensor<2x3xf32>
    ```
  }];
  let options = [Option<"all", "all", "bool", "false", "replace attention and its gradient too">];
  let dependentDialects = ["::nd::NDDialect"];
}

#endif // ND_DIALECT_ND_TRANSFORMS_PASSES_TD
