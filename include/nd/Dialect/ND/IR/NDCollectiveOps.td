//===- NDCollectiveOps.td - Meshes, reshards and collectives -*- tablegen -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_DIALECT_ND_IR_NDCOLLECTIVEOPS_TD
#define ND_DIALECT_ND_IR_NDCOLLECTIVEOPS_TD

include "mlir/IR/SymbolInterfaces.td"
include "nd/Dialect/ND/IR/NDAttrs.td"

def ND_MeshAxisArray : TypedArrayAttrBase<ND_MeshAxisAttr, "mesh axes, outer to inner">;

def ND_MeshOp : ND_Op<"mesh", [Symbol]> {
  let summary = "ranks arranged along named axes";
  let description = [{
    Axes are listed outer to inner; a rank's coordinates are its row-major index. Axes of size 1 are kept: that an axis is
    named can matter to a plan.

    ```mlir
    nd.mesh @mesh axes [#nd.axis<"dp" = 4, replicate>, #nd.axis<"tp" = 2, tensor>]
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, ND_MeshAxisArray:$axes);
  let assemblyFormat = "$sym_name `axes` $axes attr-dict";
  let extraClassDeclaration = [{
    /// The axis of that name, or null.
    MeshAxisAttr findAxis(mlir::StringAttr name);
    /// Ranks along all of the axes.
    int64_t getNumRanks();
  }];
  let hasVerifier = 1;
}

/// Operations of the global view: they name a sharding, not yet a communication.
def ND_ReshardOp : ND_PureOp<"reshard", [AllShapesMatch<["input", "result"]>, AllElementTypesMatch<["input", "result"]>]> {
  let summary = "the same tensor under another sharding";
  let description = [{
    Partitioning turns it into collectives. Unreduced axes can become reduced or sharded, never the other way round.
    `instance` keeps two reshards of one value apart where they must not be merged; `reason` and `name` say why it is
    here and what it moves, and go with the collectives.
  }];
  let arguments = (ins ND_Tensor:$input, I64Attr:$instance, StrAttr:$reason, StrAttr:$name);
  let results = (outs ND_Tensor:$result);
  let assemblyFormat = [{
    $input `instance` `=` $instance `name` `=` $name `reason` `=` $reason attr-dict `:` type($input) `->` type($result)
  }];
  let hasVerifier = 1;
}

def ND_ScaleOp : ND_PureOp<"scale", [AllTypesMatch<["input", "result"]>]> {
  let summary = "every element times a 0-d factor, linear in its first operand";
  let description = [{
    The product of a tensor in any state, unreduced too, with a replicated number. `arith.mulf` wants equal encodings of its
    operands. Partitioning turns it into a broadcast and `arith.mulf`.
  }];
  let arguments = (ins ND_FloatTensor:$input, ND_Tensor:$factor);
  let results = (outs ND_FloatTensor:$result);
  let assemblyFormat = "$input `,` $factor attr-dict `:` type($input) `,` type($factor)";
  let hasVerifier = 1;
}

/// Collectives work on local tensors. They are pure, so a dead one vanishes (on all ranks alike: these run one program), and
/// `instance` differs from one to the next, so equal ones are never merged.
class ND_CollectiveOp<string mnemonic, list<Trait> traits = []>
    : ND_Op<mnemonic, !listconcat(traits, [Pure, DeclareOpInterfaceMethods<SymbolUserOpInterface>])> {
  dag group = (ins FlatSymbolRefAttr:$mesh, StrArrayAttr:$axes, I64Attr:$instance, StrAttr:$reason);
}

def ND_AllReduceOp : ND_CollectiveOp<"all_reduce", [DeclareOpInterfaceMethods<InferTypeOpInterface>]> {
  let summary = "combines tensors over the ranks along mesh axes; every rank gets the result";
  let description = [{
    Several tensors of one element type form one collective: one call over their concatenation. `names` says what each is.

    ```mlir
    %0:2 = nd.all_reduce sum %a, %b over @mesh ["dp"] instance = 3 names = ["h.0.w", "h.0.b"] reason = "gradients"
        : tensor<64x32xf32>, tensor<32xf32>
    ```
  }];
  let arguments = !con((ins ND_ReductionKindAttr:$kind, Variadic<ND_Tensor>:$inputs), group, (ins StrArrayAttr:$names));
  let results = (outs Variadic<ND_Tensor>:$results);
  let assemblyFormat = [{
    $kind $inputs `over` $mesh $axes `instance` `=` $instance `names` `=` $names `reason` `=` $reason attr-dict
    `:` type($inputs)
  }];
  let extraClassDeclaration = [{
    /// Bytes of the operands on one rank.
    int64_t getPayloadBytes();
  }];
  let hasVerifier = 1;
}

def ND_AllGatherOp : ND_CollectiveOp<"all_gather", [AllElementTypesMatch<["input", "result"]>]> {
  let summary = "joins the shards of the ranks along mesh axes, in dimension `dim`";
  let description = [{
    Axes are major to minor: the first one's coordinate selects the largest part of the result.

    ```mlir
    %0 = nd.all_gather %x over @mesh ["dp"] dim = 0 instance = 4 name = "x" reason = "nd.iota needs the whole dimension"
        : tensor<4x64xf32> -> tensor<8x64xf32>
    ```
  }];
  let arguments = !con((ins ND_Tensor:$input), group, (ins I64Attr:$dim, StrAttr:$name));
  let results = (outs ND_Tensor:$result);
  let assemblyFormat = [{
    $input `over` $mesh $axes `dim` `=` $dim `instance` `=` $instance `name` `=` $name `reason` `=` $reason attr-dict
    `:` type($input) `->` type($result)
  }];
}

def ND_ReduceScatterOp : ND_CollectiveOp<"reduce_scatter", [AllElementTypesMatch<["input", "result"]>]> {
  let summary = "combines tensors over the ranks along mesh axes; each rank gets its shard of dimension `dim`";
  let arguments = !con((ins ND_ReductionKindAttr:$kind, ND_Tensor:$input), group, (ins I64Attr:$dim, StrAttr:$name));
  let results = (outs ND_Tensor:$result);
  let assemblyFormat = [{
    $kind $input `over` $mesh $axes `dim` `=` $dim `instance` `=` $instance `name` `=` $name `reason` `=` $reason attr-dict
    `:` type($input) `->` type($result)
  }];
}

#endif // ND_DIALECT_ND_IR_NDCOLLECTIVEOPS_TD
