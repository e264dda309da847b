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

def UnmergeDimensions : Pass<"nd-unmerge-dimensions", "::mlir::func::FuncOp"> {
  let summary = "keep batch and sequence as dimensions of their own";
  let description = [{
    Exporters merge the dimensions of tokens before a product ([B, S, H] becomes [B*S, H], in [S, B, H] order too) and split them again behind
    it. A merged dimension can be sharded along its major part only, so every reshape that merges a dimension of tokens (batch, sequence) with others is
    moved behind the operations that read it, until it meets a reshape that splits again or an operation that needs the merged dimension; there
    it stays. Dimensions of tokens are those of `input` arguments (of floats: all but the last), followed through the sharding rules.
    Features that merge (heads and their width) are left alone.

    Expects a forward function. Afterwards values are the same; an operation reads a merged dimension of tokens only where it needs it.

    ```mlir
    %0 = nd.reshape %x : tensor<2x8x32xf32> -> tensor<16x32xf32>
    %1 = nd.dot_general %0, %w contract = [1] x [0] : tensor<16x32xf32>, tensor<32x48xf32> -> tensor<16x48xf32>
    // becomes
    %0 = nd.dot_general %x, %w contract = [2] x [0] : tensor<2x8x32xf32>, tensor<32x48xf32> -> tensor<2x8x48xf32>
    %1 = nd.reshape %0 : tensor<2x8x48xf32> -> tensor<16x48xf32>
    ```
  }];
  let dependentDialects = ["::nd::NDDialect", "::mlir::arith::ArithDialect"];
}

def SplitParameters : Pass<"nd-split-parameters", "::mlir::func::FuncOp"> {
  let summary = "make one argument of each part of a fused parameter";
  let description = [{
    A weight whose product is cut by slices into contiguous parts that cover it (query, key and value; gate and up), directly or behind reshapes,
    transposes and elementwise operations, becomes one argument for each part, and so do the biases added on the way. Tensor parallelism then shards inside
    each part. The parts of `w` are named `w#0`, `w#1`, ... and carry `nd.part = {name = "w", dim, offset, size}`: elements [offset, offset + own size) of
    dimension `dim`, which is `size` in the file. Loading and saving cut and join them.

    A weight with other readers, or one whose heads interleave the parts, stays as it is. Expects a forward function, after
    `nd-unmerge-dimensions`.

    ```mlir
    func.func @forward(%w: tensor<32x96xf32> {nd.kind = "weight", nd.name = "w"}, ...)
      %0 = nd.dot_general %x, %w contract = [2] x [0] : tensor<2x8x32xf32>, tensor<32x96xf32> -> tensor<2x8x96xf32>
      %1 = nd.slice %0 starts = [0, 0, 0] strides = [1, 1, 1] : tensor<2x8x96xf32> -> tensor<2x8x64xf32>
      %2 = nd.slice %0 starts = [0, 0, 64] strides = [1, 1, 1] : tensor<2x8x96xf32> -> tensor<2x8x32xf32>
    // becomes
    func.func @forward(%w0: tensor<32x64xf32> {nd.name = "w#0", nd.part = {name = "w", dim = 1, offset = 0, size = 96}, ...},
                       %w1: tensor<32x32xf32> {nd.name = "w#1", nd.part = {name = "w", dim = 1, offset = 64, size = 96}, ...}, ...)
      %1 = nd.dot_general %x, %w0 contract = [2] x [0] : tensor<2x8x32xf32>, tensor<32x64xf32> -> tensor<2x8x64xf32>
      %2 = nd.dot_general %x, %w1 contract = [2] x [0] : tensor<2x8x32xf32>, tensor<32x32xf32> -> tensor<2x8x32xf32>
    ```
  }];
  let dependentDialects = ["::nd::NDDialect", "::mlir::arith::ArithDialect"];
}

#endif // ND_DIALECT_ND_TRANSFORMS_PASSES_TD
