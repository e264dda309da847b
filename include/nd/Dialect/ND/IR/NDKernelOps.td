//===- NDKernelOps.td - What becomes one kernel or library call -*- tablegen -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_DIALECT_ND_IR_NDKERNELOPS_TD
#define ND_DIALECT_ND_IR_NDKERNELOPS_TD

include "nd/Dialect/ND/IR/NDDialect.td"

def ND_YieldOp : ND_Op<"yield", [Pure, Terminator, ParentOneOf<["KernelOp", "RepeatOp"]>]> {
  let summary = "the results of a region";
  let arguments = (ins Variadic<ND_Tensor>:$operands);
  let assemblyFormat = "($operands^ `:` type($operands))? attr-dict";
}

def ND_KernelOp : ND_Op<"kernel", [Pure, IsolatedFromAbove, SingleBlock]> {
  let summary = "a group of tensor operations that one generated kernel computes";
  let description = [{
    Formed by `nd-form-kernels` on local (partitioned) tensors, after decomposition. The region holds the grouped
    operations verbatim; equal regions become one compiled kernel. Value semantics: bufferization decides which results
    are computed in place of an operand that dies.
  }];
  let arguments = (ins Variadic<ND_Tensor>:$inputs);
  let results = (outs Variadic<ND_Tensor>:$results);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "`(` $inputs `)` attr-dict-with-keyword `:` functional-type($inputs, $results) $body";
  let hasVerifier = 1;
}

def ND_GemmOp : ND_Op<"gemm", [Pure, AttrSizedOperandSegments]> {
  let summary = "batched matrix product with optional bias row and accumulator, as one library call";
  let description = [{
    Formed by `nd-form-gemms` from `nd.dot_general`: `lhs` is [G, M, K] ([G, K, M] with `transpose_lhs`), `rhs` [G, K, N] ([G, N, K] with
    `transpose_rhs`), the result [G, M, N] (+ bias [N] + accumulator [G, M, N]). G may be absent (2-d operands).
  }];
  let arguments = (ins ND_FloatTensor:$lhs, ND_FloatTensor:$rhs, Optional<ND_FloatTensor>:$bias,
                       Optional<ND_FloatTensor>:$accumulator, UnitAttr:$transpose_lhs, UnitAttr:$transpose_rhs);
  let results = (outs ND_FloatTensor:$result);
  let assemblyFormat = [{
    $lhs (`transposed` $transpose_lhs^)? `,` $rhs (`transposed` $transpose_rhs^)? (`bias` `(` $bias^ `:` type($bias) `)`)?
    (`accumulate` `(` $accumulator^ `:` type($accumulator) `)`)? attr-dict `:` type($lhs) `,` type($rhs) `->` type($result)
  }];
  let hasVerifier = 1;
}

#endif // ND_DIALECT_ND_IR_NDKERNELOPS_TD
