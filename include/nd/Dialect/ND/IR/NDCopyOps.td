//===- NDCopyOps.td - Sums over copies ----------------------*- tablegen -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_DIALECT_ND_IR_NDCOPYOPS_TD
#define ND_DIALECT_ND_IR_NDCOPYOPS_TD

include "nd/Dialect/ND/IR/NDDialect.td"

/// A dimension stored in `n` shards of `units` units of `unit` elements, some of them copies of each other: `groups` says of
/// each shard's units, shard by shard, which one of the other tensor's dimension `dim` they are a copy of, at their place in
/// the shard; -1: of none. Dimension `dim + 1` of that tensor is the place.
class ND_CopiesOp<string mnemonic> : ND_CompositeOp<mnemonic, [AllElementTypesMatch<["input", "result"]>]> {
  let arguments = (ins ND_FloatTensor:$input, I64Attr:$dim, I64Attr:$unit, I64Attr:$units, DenseI64ArrayAttr:$groups,
                       OptionalAttr<StrArrayAttr>:$shard_axes, OptionalAttr<StrArrayAttr>:$unit_axes);
  let results = (outs ND_FloatTensor:$result);
  let assemblyFormat = [{
    $input `dim` `=` $dim `unit` `=` $unit `units` `=` $units `groups` `=` $groups attr-dict
    `:` type($input) `->` type($result)
  }];
  let hasVerifier = 1;
}

def ND_SumCopiesOp : ND_CopiesOp<"sum_copies"> {
  let summary = "adds up what the shards of a dimension hold for the same units";
  let description = [{
    The gradient of units that several shards hold is the sum over their holders. Element p of shard s of dimension `dim`
    goes to [groups[s * units + p / unit], p] of the result's dimensions `dim`, `dim + 1`; where no unit is, the result is 0.

    Three shards of two slots, for two heads of 16 rows, of which the shards hold the first, both, the second:

    ```mlir
    %0 = nd.sum_copies %g dim = 0 unit = 16 units = 2 groups = [0, -1, 0, 0, -1, 0] : tensor<96x64xf32> -> tensor<1x32x64xf32>
    ```

    In a rank's program the input is this rank's shards over `shard_axes`, and of each of them this rank's units over
    `unit_axes`; the result is a partial sum over `shard_axes`.
  }];
}

def ND_MakeCopiesOp : ND_CopiesOp<"make_copies"> {
  let summary = "gives the shards of a dimension the units that they hold";
  let description = [{
    The inverse of `nd.sum_copies` on sums: element p of shard s of the result's dimension `dim` is
    [groups[s * units + p / unit], p] of the input's dimensions `dim`, `dim + 1`; 0 where the group is -1.

    ```mlir
    %1 = nd.make_copies %0 dim = 0 unit = 16 units = 2 groups = [0, -1, 0, 0, -1, 0] : tensor<1x32x64xf32> -> tensor<96x64xf32>
    ```

    In a rank's program the input is whole over `shard_axes`, and the result is this rank's.
  }];
}

#endif // ND_DIALECT_ND_IR_NDCOPYOPS_TD
