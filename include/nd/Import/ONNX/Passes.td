//===- Passes.td - Passes of the import ---------------------*- tablegen -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_IMPORT_ONNX_PASSES_TD
#define ND_IMPORT_ONNX_PASSES_TD

include "mlir/Pass/PassBase.td"

def NDConvertOnnx : Pass<"nd-convert-onnx", "::mlir::ModuleOp"> {
  let summary = "replaces every onnx.node by operations of nd, arith and math";
  let description = [{
    Nodes are converted in order, so that every operand's shape is known; shape arithmetic is evaluated where a node needs
    its value, and dies. Broadcasts become explicit, integers i64, booleans i1. Node types without a conversion are listed in one
    error, with counts and a first location each; nothing is changed then.

    ```mlir
    %y = onnx.node "Add" version 14 (%x, %bias) {} : (tensor<2x8xf32>, tensor<8xf32>) -> none
    // becomes
    %0 = nd.broadcast %bias dims = [1] : tensor<8xf32> -> tensor<2x8xf32>
    %y = arith.addf %x, %0 : tensor<2x8xf32>
    ```
  }];
  let dependentDialects = ["::nd::NDDialect", "::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
                           "::mlir::func::FuncDialect"];
}

def NDRecoverComposites : Pass<"nd-recover-composites", "::mlir::ModuleOp"> {
  let summary = "finds norms, rotary embeddings, attention, its masks and cross-entropy in their parts";
  let description = [{
    What another exporter has taken apart becomes one composite again: RMSNorm, rotary embedding, softmax attention (with
    repeated key/value heads), causal, window and document masks (as predicates over positions, never as an S x S constant),
    cross-entropy. What is not recognised stays as it is, general and correct.
  }];
  let dependentDialects = ["::nd::NDDialect", "::mlir::arith::ArithDialect", "::mlir::math::MathDialect"];
}

def NDFinishImport : Pass<"nd-finish-import", "::mlir::ModuleOp"> {
  let summary = "drops unused parameters and derives what inputs index";
  let description = [{
    Unused parameters vanish with a warning. An integer input that `nd.take` reads gets `nd.bound`, the smallest table it
    indexes; a table's `nd.padding_idx` moves to its `nd.take` as well.
  }];
  let dependentDialects = ["::nd::NDDialect"];
}

#endif // ND_IMPORT_ONNX_PASSES_TD
