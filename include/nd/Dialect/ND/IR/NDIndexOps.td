//===- NDIndexOps.td - Gathers and scatters -----------------*- tablegen -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_DIALECT_ND_IR_NDINDEXOPS_TD
#define ND_DIALECT_ND_IR_NDINDEXOPS_TD

include "nd/Dialect/ND/IR/NDDialect.td"

def ND_TakeOp : ND_DifferentiableOp<"take", [AllElementTypesMatch<["table", "result"]>]> {
  let summary = "rows of a table: result[i..., d...] = table[indices[i...], d...]";
  let description = [{
    Indices lie in [0, rows); the loader checks those that come from data. `padding_idx` is a row that receives no gradient.

    `shard_axes`, in a rank's program: the table is this rank's shard of the rows over these mesh axes. Indices are still
    global, rows of other ranks read as zeros, and the result is a partial sum over the axes.
  }];
  let arguments = (ins ND_Tensor:$table, ND_IntTensor:$indices, OptionalAttr<I64Attr>:$padding_idx,
                       OptionalAttr<StrArrayAttr>:$shard_axes);
  let results = (outs ND_Tensor:$result);
  let assemblyFormat = "$table `[` $indices `]` attr-dict `:` type($table) `,` type($indices) `->` type($result)";
  let hasVerifier = 1;
}

def ND_ScatterAddOp : ND_DifferentiableOp<"scatter_add"> {
  let summary = "the transpose of take: result[r] = init[r] + sum of the updates whose index is r";
  let description = [{
    Without `init` the sum starts at zero. The order of summation is that of the indices, always.

    `shard_axes`, in a rank's program: the result is this rank's shard of the rows over these mesh axes. Indices are global,
    and updates of other ranks' rows are dropped.
  }];
  let arguments = (ins ND_IntTensor:$indices, ND_FloatTensor:$updates, Optional<ND_FloatTensor>:$init,
                       OptionalAttr<I64Attr>:$padding_idx, OptionalAttr<StrArrayAttr>:$shard_axes);
  let results = (outs ND_FloatTensor:$result);
  let assemblyFormat = [{
    $indices `,` $updates (`init` $init^ `:` type($init))? attr-dict `:` type($indices) `,` type($updates) `->` type($result)
  }];
  let hasVerifier = 1;
}

def ND_TakeAlongOp : ND_DifferentiableOp<"take_along", [AllElementTypesMatch<["input", "result"]>]> {
  let summary = "one element per index along `dim` (torch.gather)";
  let arguments = (ins ND_Tensor:$input, ND_IntTensor:$indices, I64Attr:$dim);
  let results = (outs ND_Tensor:$result);
  let assemblyFormat = "$input `[` $indices `]` `dim` `=` $dim attr-dict `:` type($input) `,` type($indices) `->` type($result)";
  let hasVerifier = 1;
}

def ND_ScatterAddAlongOp : ND_DifferentiableOp<"scatter_add_along"> {
  let summary = "the transpose of take_along, starting at zero (torch.scatter_add)";
  let arguments = (ins ND_IntTensor:$indices, ND_FloatTensor:$updates, I64Attr:$dim);
  let results = (outs ND_FloatTensor:$result);
  let assemblyFormat = "$indices `,` $updates `dim` `=` $dim attr-dict `:` type($indices) `,` type($updates) `->` type($result)";
  let hasVerifier = 1;
}

#endif // ND_DIALECT_ND_IR_NDINDEXOPS_TD
