//===- NDReductionOps.td - Contractions and reductions ------*- tablegen -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_DIALECT_ND_IR_NDREDUCTIONOPS_TD
#define ND_DIALECT_ND_IR_NDREDUCTIONOPS_TD

include "nd/Dialect/ND/IR/NDDialect.td"
include "nd/Dialect/ND/IR/NDEnums.td"

def ND_DotGeneralOp : ND_DifferentiableOp<"dot_general", [AllElementTypesMatch<["lhs", "rhs"]>]> {
  let summary = "contraction over one or more dimensions, with optional batch dimensions";
  let description = [{
    The result's dimensions are the batch dimensions, then the left free, then the right free ones, each in operand order.
    The result's element type is the type of accumulation's rounding (f32 for f32 and for bf16 with f32 result).

    ```mlir
    %y = nd.dot_general %x, %w contract = [2] x [1] : tensor<2x8x16xf32>, tensor<32x16xf32> -> tensor<2x8x32xf32>
    %s = nd.dot_general %q, %k batch = [0] x [0] contract = [2] x [2] : ...
    ```
  }];
  let arguments = (ins ND_FloatTensor:$lhs, ND_FloatTensor:$rhs,
      DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$lhs_batch, DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$rhs_batch,
      DenseI64ArrayAttr:$lhs_contract, DenseI64ArrayAttr:$rhs_contract);
  let results = (outs ND_FloatTensor:$result);
  let assemblyFormat = [{
    $lhs `,` $rhs (`batch` `=` $lhs_batch^ `x` $rhs_batch)? `contract` `=` $lhs_contract `x` $rhs_contract attr-dict
    `:` type($lhs) `,` type($rhs) `->` type($result)
  }];
  let extraClassDeclaration = [{
    /// Dimensions of `lhs` (`rhs`) that are neither batch nor contracted, ascending.
    llvm::SmallVector<int64_t> getLhsFree();
    llvm::SmallVector<int64_t> getRhsFree();
  }];
  let hasVerifier = 1;
  let hasCanonicalizer = 1;
}

def ND_ReduceOp : ND_DifferentiableOp<"reduce", [AllElementTypesMatch<["input", "result"]>]> {
  let summary = "combines all elements along `dims`, which vanish";
  let description = [{
    `dims` increase strictly. A `max` or `min` of something that holds a NaN is NaN, as `arith.maximumf`; of booleans it is
    `or` and `and`; over no element it is refused. The gradient of `max` and `min` goes to all elements equal to the result, divided by their number (as PyTorch's amax).
  }];
  let arguments = (ins ND_ReductionKindAttr:$kind, ND_Tensor:$input, DenseI64ArrayAttr:$dims);
  let results = (outs ND_Tensor:$result);
  let assemblyFormat = "$kind $input `dims` `=` $dims attr-dict `:` type($input) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
  let hasCanonicalizer = 1;
}

def ND_ArgMaxOp : ND_PureOp<"arg_max"> {
  let summary = "index of the first largest element along `dim`, which vanishes";
  let arguments = (ins ND_Tensor:$input, I64Attr:$dim);
  let results = (outs ND_IntTensor:$result);
  let assemblyFormat = "$input `dim` `=` $dim attr-dict `:` type($input) `->` type($result)";
  let hasVerifier = 1;
}

def ND_TopKOp : ND_DifferentiableOp<"top_k"> {
  let summary = "the largest elements of the last dimension in descending order, and their indices";
  let arguments = (ins ND_Tensor:$input);
  let results = (outs ND_Tensor:$values, ND_IntTensor:$indices);
  let assemblyFormat = "$input attr-dict `:` type($input) `->` type($values) `,` type($indices)";
  let hasVerifier = 1;
}

def ND_CumSumOp : ND_DifferentiableOp<"cumsum", [AllTypesMatch<["input", "result"]>]> {
  let summary = "running sum along `dim`, optionally without the element itself or from the end";
  let arguments = (ins ND_Tensor:$input, I64Attr:$dim, UnitAttr:$exclusive, UnitAttr:$reverse);
  let results = (outs ND_Tensor:$result);
  let assemblyFormat = "$input `dim` `=` $dim (`exclusive` $exclusive^)? (`reverse` $reverse^)? attr-dict `:` type($input)";
  let hasVerifier = 1;
}

def ND_AsPartialOp : ND_PureOp<"as_partial", [AllShapesMatch<["input", "result"]>, AllElementTypesMatch<["input", "result"]>]> {
  let summary = "a number that all ranks have, as a sum over ranks";
  let description = [{
    Each of the `parts` ranks along `axes` takes one part of the value, so that it can be added to partial sums and reduced with
    them in one collective: the norm of all gradients, of which some are sharded and some are not. In the global view
    the result is unreduced over the axes.

    ```mlir
    %1 = nd.as_partial %0 over ["tp"] parts = 2 : tensor<f32> -> tensor<f32>
    ```
  }];
  let arguments = (ins ND_FloatTensor:$input, StrArrayAttr:$axes, I64Attr:$parts);
  let results = (outs ND_FloatTensor:$result);
  let assemblyFormat = "$input `over` $axes `parts` `=` $parts attr-dict `:` type($input) `->` type($result)";
}

#endif // ND_DIALECT_ND_IR_NDREDUCTIONOPS_TD
