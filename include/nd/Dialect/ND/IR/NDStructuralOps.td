//===- NDStructuralOps.td - Data movement -------------------*- tablegen -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_DIALECT_ND_IR_NDSTRUCTURALOPS_TD
#define ND_DIALECT_ND_IR_NDSTRUCTURALOPS_TD

include "nd/Dialect/ND/IR/NDDialect.td"

def ND_BroadcastOp : ND_DifferentiableOp<"broadcast", [AllElementTypesMatch<["input", "result"]>]> {
  let summary = "repeats a tensor along new dimensions";
  let description = [{
    Dimension `i` of the operand becomes dimension `dims[i]` of the result, of equal size; `dims` is strictly increasing.
    All other dimensions of the result are new. A dimension of size 1 is never stretched: reshape it away first.

    ```mlir
    %y = nd.broadcast %bias dims = [1] : tensor<64xf32> -> tensor<8x64xf32>
    ```
  }];
  let arguments = (ins ND_Tensor:$input, DenseI64ArrayAttr:$dims);
  let results = (outs ND_Tensor:$result);
  let assemblyFormat = "$input `dims` `=` $dims attr-dict `:` type($input) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
  let hasCanonicalizer = 1;
}

def ND_ReshapeOp : ND_DifferentiableOp<"reshape", [AllElementTypesMatch<["input", "result"]>]> {
  let summary = "the same elements in row-major order under another shape";
  let arguments = (ins ND_Tensor:$input);
  let results = (outs ND_Tensor:$result);
  let assemblyFormat = "$input attr-dict `:` type($input) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
  let hasCanonicalizer = 1;
}

def ND_TransposeOp : ND_DifferentiableOp<"transpose", [AllElementTypesMatch<["input", "result"]>]> {
  let summary = "permutes dimensions: dimension `i` of the result is dimension `permutation[i]` of the operand";
  let arguments = (ins ND_Tensor:$input, DenseI64ArrayAttr:$permutation);
  let results = (outs ND_Tensor:$result);
  let assemblyFormat = "$input `permutation` `=` $permutation attr-dict `:` type($input) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
  let hasCanonicalizer = 1;
}

def ND_SliceOp : ND_DifferentiableOp<"slice", [AllElementTypesMatch<["input", "result"]>]> {
  let summary = "elements `starts[d] + i * strides[d]` of each dimension; the sizes are the result's";
  let arguments = (ins ND_Tensor:$input, DenseI64ArrayAttr:$starts, DenseI64ArrayAttr:$strides);
  let results = (outs ND_Tensor:$result);
  let assemblyFormat = "$input `starts` `=` $starts `strides` `=` $strides attr-dict `:` type($input) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
  let hasCanonicalizer = 1;
}

def ND_PadOp : ND_DifferentiableOp<"pad", [AllElementTypesMatch<["input", "value", "result"]>]> {
  let summary = "surrounds a tensor with a value: `low` before, `high` after, `interior` between elements";
  let description = [{
    The transpose of `nd.slice` when the value is zero. `value` is a 0-d tensor; amounts are not negative.
  }];
  let arguments = (ins ND_Tensor:$input, ND_Tensor:$value, DenseI64ArrayAttr:$low, DenseI64ArrayAttr:$high,
                       DenseI64ArrayAttr:$interior);
  let results = (outs ND_Tensor:$result);
  let assemblyFormat = [{
    $input `,` $value `low` `=` $low `high` `=` $high `interior` `=` $interior attr-dict
    `:` type($input) `,` type($value) `->` type($result)
  }];
  let hasVerifier = 1;
  let hasFolder = 1;
  let hasCanonicalizer = 1;
}

def ND_ConcatOp : ND_DifferentiableOp<"concat"> {
  let summary = "tensors one after the other along one dimension";
  let arguments = (ins Variadic<ND_Tensor>:$inputs, I64Attr:$dim);
  let results = (outs ND_Tensor:$result);
  let assemblyFormat = "$inputs `dim` `=` $dim attr-dict `:` type($inputs) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
  let hasCanonicalizer = 1;
}

def ND_IotaOp : ND_PureOp<"iota"> {
  let summary = "each element is its own index along `dim`";
  let description = [{
    `shard_axes`, in a rank's program: the result is this rank's shard of `dim` over these mesh axes; elements are global
    indices.
  }];
  let arguments = (ins I64Attr:$dim, OptionalAttr<StrArrayAttr>:$shard_axes);
  let results = (outs ND_Tensor:$result);
  let assemblyFormat = "`dim` `=` $dim attr-dict `:` type($result)";
  let hasVerifier = 1;
}

#endif // ND_DIALECT_ND_IR_NDSTRUCTURALOPS_TD
