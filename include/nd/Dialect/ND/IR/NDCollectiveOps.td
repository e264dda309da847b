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

    An axis that is used in parts is named in parts, major to minor: `#nd.axis<"tp.0" = 2, tensor>, #nd.axis<"tp.1" = 2, tensor>`.

    The ranks fill `nodes` nodes (1 unless it says more), one after the other, each with as many of them.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, ND_MeshAxisArray:$axes, DefaultValuedAttr<I64Attr, "1">:$nodes);
  let assemblyFormat = "$sym_name `axes` $axes (`nodes` $nodes^)? attr-dict";
  let extraClassDeclaration = [{
    /// The axis of that name, or null.
    MeshAxisAttr findAxis(mlir::StringAttr name);
    /// Ranks along all of the axes.
    int64_t getNumRanks();
    /// How metrics and reports name the ranks along these axes: the axes of size above 1 in the order of the mesh, joined
    /// by `+`. Parts `tp.0`, `tp.1` of a split axis are `tp` together; `tp[2]` is a part of size 2 that holds neighbours.
    std::string getGroupLabel(mlir::ArrayAttr axes);
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
/// `instance` differs from one to the next, so equal ones are never merged. Axes are major to minor, in any order: a rank's
/// *position* in the group is the row-major index of its coordinates along them. A tensor's part i belongs to position i.
class ND_CollectiveOp<string mnemonic, list<Trait> traits = []>
    : ND_Op<mnemonic, !listconcat(traits, [Pure, DeclareOpInterfaceMethods<SymbolUserOpInterface>])> {
  dag group = (ins FlatSymbolRefAttr:$mesh, StrArrayAttr:$axes, I64Attr:$instance, StrAttr:$reason);
}

/// Several tensors of one element type form one collective: one call over their concatenation. `names` says what each is.
class ND_VariadicCollectiveOp<string mnemonic, list<Trait> traits = []> : ND_CollectiveOp<mnemonic, traits> {
  let results = (outs Variadic<ND_Tensor>:$results);
  let extraClassDeclaration = [{
    /// Bytes of the whole tensors: the operands, of an all-gather the results.
    int64_t getPayloadBytes();
  }];
  let hasVerifier = 1;
}

def ND_AllReduceOp : ND_VariadicCollectiveOp<"all_reduce", [DeclareOpInterfaceMethods<InferTypeOpInterface>]> {
  let summary = "combines tensors over the ranks along mesh axes; every rank gets the result";
  let description = [{
    ```mlir
    %0:2 = nd.all_reduce sum %a, %b over @mesh ["dp"] instance = 3 names = ["h.0.w", "h.0.b"] reason = "gradients"
        : tensor<64x32xf32>, tensor<32xf32>
    ```
  }];
  let arguments = !con((ins ND_ReductionKindAttr:$kind, Variadic<ND_Tensor>:$inputs), group, (ins StrArrayAttr:$names));
  let assemblyFormat = [{
    $kind $inputs `over` $mesh $axes `instance` `=` $instance `names` `=` $names `reason` `=` $reason attr-dict
    `:` type($inputs)
  }];
}

def ND_AllGatherOp : ND_VariadicCollectiveOp<"all_gather"> {
  let summary = "joins the shards of the ranks along mesh axes, each tensor in its dimension of `dims`";
  let description = [{
    Axes are major to minor: the first one's coordinate selects the largest part of the result.

    ```mlir
    %0:2 = nd.all_gather %w, %b over @mesh ["fsdp"] dims = [0, 0] instance = 4 names = ["w", "b"] reason = "used whole"
        : tensor<4x64xf32>, tensor<8xf32> -> tensor<8x64xf32>, tensor<16xf32>
    ```
  }];
  let arguments = !con((ins Variadic<ND_Tensor>:$inputs), group, (ins DenseI64ArrayAttr:$dims, StrArrayAttr:$names));
  let assemblyFormat = [{
    $inputs `over` $mesh $axes `dims` `=` $dims `instance` `=` $instance `names` `=` $names `reason` `=` $reason attr-dict
    `:` type($inputs) `->` type($results)
  }];
}

def ND_ReduceScatterOp : ND_VariadicCollectiveOp<"reduce_scatter"> {
  let summary = "combines tensors over the ranks along mesh axes; each rank gets its shard, of the dimension in `dims`";
  let description = [{
    ```mlir
    %0:2 = nd.reduce_scatter sum %w, %b over @mesh ["fsdp"] dims = [0, 0] instance = 4 names = ["w", "b"] reason = "shards"
        : tensor<8x64xf32>, tensor<16xf32> -> tensor<4x64xf32>, tensor<8xf32>
    ```
  }];
  let arguments = !con((ins ND_ReductionKindAttr:$kind, Variadic<ND_Tensor>:$inputs), group,
                       (ins DenseI64ArrayAttr:$dims, StrArrayAttr:$names));
  let assemblyFormat = [{
    $kind $inputs `over` $mesh $axes `dims` `=` $dims `instance` `=` $instance `names` `=` $names `reason` `=` $reason
    attr-dict `:` type($inputs) `->` type($results)
  }];
}

def ND_AllToAllOp : ND_CollectiveOp<"all_to_all", [AllElementTypesMatch<["input", "result"]>]> {
  let summary = "moves a sharding from dimension `concat_dim` to dimension `split_dim`";
  let description = [{
    Each rank cuts its tensor along `split_dim`, sends part i to position i, and joins what it gets along `concat_dim`.

    ```mlir
    %0 = nd.all_to_all %q over @mesh ["cp"] split_dim = 1 concat_dim = 2 instance = 5 name = "q" reason = "heads, not tokens"
        : tensor<2x8x64x16xf32> -> tensor<2x4x128x16xf32>
    ```
  }];
  let arguments = !con((ins ND_Tensor:$input), group, (ins I64Attr:$split_dim, I64Attr:$concat_dim, StrAttr:$name));
  let results = (outs ND_Tensor:$result);
  let assemblyFormat = [{
    $input `over` $mesh $axes `split_dim` `=` $split_dim `concat_dim` `=` $concat_dim `instance` `=` $instance `name` `=` $name
    `reason` `=` $reason attr-dict `:` type($input) `->` type($result)
  }];
}

def ND_PermuteOp : ND_CollectiveOp<"permute", [AllTypesMatch<["input", "result"]>]> {
  let summary = "each rank gets the tensor of another one along mesh axes";
  let description = [{
    Position i of the group receives the tensor of position `sources[i]`; `sources` is a permutation. A permutation that
    changes how a tensor is sharded says so: `before` and `after` are its shardings. Without them the result is the shard
    of another rank, as in a ring.

    ```mlir
    %0 = nd.permute %k over @mesh ["cp"] sources = [3, 0, 1, 2] instance = 6 name = "k" reason = "ring" : tensor<2x2x64x16xf32>
    ```
  }];
  let arguments = !con((ins ND_Tensor:$input), group, (ins DenseI64ArrayAttr:$sources, StrAttr:$name,
                       OptionalAttr<ND_ShardingAttr>:$before, OptionalAttr<ND_ShardingAttr>:$after));
  let results = (outs ND_Tensor:$result);
  let assemblyFormat = [{
    $input `over` $mesh $axes `sources` `=` $sources (`before` `=` $before^)? (`after` `=` $after^)? `instance` `=` $instance
    `name` `=` $name `reason` `=` $reason attr-dict `:` type($input)
  }];
}

def ND_AllSliceOp : ND_CollectiveOp<"all_slice", [AllElementTypesMatch<["input", "result"]>]> {
  let summary = "this rank's shard of a tensor that the ranks along mesh axes hold whole; nothing is sent";
  let description = [{
    ```mlir
    %0 = nd.all_slice %x over @mesh ["tp"] dim = 1 instance = 7 name = "x" reason = "used on shards" : tensor<4x8xf32> -> tensor<4x4xf32>
    ```
  }];
  let arguments = !con((ins ND_Tensor:$input), group, (ins I64Attr:$dim, StrAttr:$name));
  let results = (outs ND_Tensor:$result);
  let assemblyFormat = [{
    $input `over` $mesh $axes `dim` `=` $dim `instance` `=` $instance `name` `=` $name `reason` `=` $reason attr-dict
    `:` type($input) `->` type($result)
  }];
}

#endif // ND_DIALECT_ND_IR_NDCOLLECTIVEOPS_TD
