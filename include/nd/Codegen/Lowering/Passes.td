//===- Passes.td - From tensors to buffers ------------------*- tablegen -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_CODEGEN_LOWERING_PASSES_TD
#define ND_CODEGEN_LOWERING_PASSES_TD

include "mlir/Pass/PassBase.td"

def FormRepeat : Pass<"nd-form-repeat", "::mlir::ModuleOp"> {
  let summary = "makes a loop of what a step does per microbatch";
  let description = [{
    What lies between `nd.microbatch` and `nd.accumulate` becomes the region of an `nd.repeat` that carries the sums, from
    zero on. What runs once keeps its order, before or behind the loop.

    ```mlir
    %x = nd.microbatch %all : tensor<4x8xf32> -> tensor<8xf32>
    %y = arith.mulf %x, %w : tensor<8xf32>
    %sum = nd.accumulate %y count = 4 : tensor<8xf32>
    // becomes
    %sum = nd.repeat count = 4 sliced(%all : tensor<4x8xf32>) carried(%zero : tensor<8xf32>)
        captured(%w : tensor<8xf32>) {
    ^bb0(%x: tensor<8xf32>, %so_far: tensor<8xf32>, %v: tensor<8xf32>):
      %y = arith.mulf %x, %v : tensor<8xf32>
      %next = arith.addf %so_far, %y : tensor<8xf32>
      nd.yield %next : tensor<8xf32>
    }
    ```
  }];
  let dependentDialects = ["::nd::NDDialect", "::mlir::arith::ArithDialect"];
}

def NDWidenAttention : Pass<"nd-widen-attention", "::mlir::func::FuncOp"> {
  let summary = "computes attention of f16 in f32";
  let description = [{
    The library's attention reads and writes f32 and bf16: operands of f16 are converted before it, results after it.

    ```mlir
    %o, %lse = nd.attention %q, %k, %v scale = 1.0 : tensor<1x2x4x8xf16>, ... -> tensor<1x2x4x8xf16>, tensor<1x2x4xf32>
    // becomes, for each operand and the result
    %qf = arith.extf %q : tensor<1x2x4x8xf16> to tensor<1x2x4x8xf32>
    %of, %lse = nd.attention %qf, %kf, %vf scale = 1.0 : tensor<1x2x4x8xf32>, ... -> tensor<1x2x4x8xf32>, tensor<1x2x4xf32>
    %o = arith.truncf %of : tensor<1x2x4x8xf32> to tensor<1x2x4x8xf16>
    ```
  }];
  let dependentDialects = ["::nd::NDDialect", "::mlir::arith::ArithDialect"];
}

def NDToRT : Pass<"nd-to-rt", "::mlir::ModuleOp"> {
  let summary = "turns the module's function into a program on buffers";
  let description = [{
    Expects one function of `nd.kernel`, `nd.gemm`, attention, collectives, reshapes, transposes, slices, concatenations
    and constants, in the order in which they are to run. It becomes an `rt.program` of the same name, and each distinct
    kernel an `rt.kernel`.

    Arguments and results become `rt.tensor`s; a result of an argument's kind and name is that argument's tensor,
    updated in place. Views alias. A value is written where its users want it (its part of a concatenation, a layout
    that makes the transpose that follows a view, the place of the result that replaces it); where that is impossible, a
    copy is inserted. `nd.all_reduce` runs in place; the operands of a combined one are neighbours in one buffer.

    ```mlir
    func.func @f(%x: tensor<4x8xf32>, %w: tensor<6x8xf32>) -> tensor<4x6xf32> {
      %0 = nd.gemm %x, %w transposed : tensor<4x8xf32>, tensor<6x8xf32> -> tensor<4x6xf32>
      return %0 : tensor<4x6xf32>
    }
    // becomes
    rt.program @f {
      %x = rt.tensor "input" "arg0" : memref<4x8xf32>
      %w = rt.tensor "input" "arg1" : memref<6x8xf32>
      %y = rt.tensor "output" "result0" : memref<4x6xf32>
      %wt = rt.view %w : memref<6x8xf32> to memref<8x6xf32, strided<[1, 8]>>
      rt.gemm %x, %wt into %y : memref<4x8xf32>, memref<8x6xf32, strided<[1, 8]>> into memref<4x6xf32>
    }
    ```
  }];
  let dependentDialects = ["::nd::NDDialect", "::nd::rt::RTDialect"];
}

#endif // ND_CODEGEN_LOWERING_PASSES_TD
