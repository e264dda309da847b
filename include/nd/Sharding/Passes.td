//===- Passes.td - From the global step to a rank's program -*- tablegen -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_SHARDING_PASSES_TD
#define ND_SHARDING_PASSES_TD

include "mlir/Pass/PassBase.td"

def Annotate : Pass<"nd-annotate", "::mlir::ModuleOp"> {
  let summary = "name the mesh, and give arguments and results their shardings";
  let description = [{
    Adds `nd.mesh @mesh`, over as many nodes as `nodes` or the system says, and the default plan, as attributes of the function's arguments and results. The batch (`batch` of the module's `nd.model`) is
    sharded over the axes of roles replicate and shard, the sequence of inputs (`seq`) over that of role context, in zig-zag chunks where attention needs it (`nd.chunks`).
    Parameters get `nd.use_sharding`, how the computation sees them: the tensor axes shard the vocabulary, heads, and what one product makes and another
    contracts, by the structure of the graph. `nd.sharding` is how they are stored and `nd.update_sharding` how they are updated: where an axis of role shard is named, over it and the
    context axis too. With `zero` below 3 weights are stored as they are used, but for master copies, which the computation reads rounded only. A result that updates an argument is sharded as that argument, a gradient as its update; a metric is replicated; other
    results stay open for propagation. An `nd.sharding` that is there already, or `annotate`, is kept and checked.

    What the mesh does not divide is padded (`nd.global_shape` stays the logical shape, `nd.blocks` says what a shard holds); where padding would count it is set to zero.
    With tensor axes, cross-entropies become their definitions, so that no rank needs all logits. kv heads fewer than the tensor axis split it in two.
    Where ranks cut through groups of query heads otherwise, each stores the kv heads that its query heads use: tensors with kv heads get the slots of all ranks (`nd.copies`),
    attention a `kv_map`, and the gradients of copies are summed (`nd.sum_copies`, `nd.make_copies`).
    Constants and expansions of numbers are copied per use, so that uses do not constrain each other.

    A batch that the data axes do not divide is an error that says which sizes would work.

    ```mlir
    func.func @step(%ids: tensor<8x16xi64> {nd.kind = "input", nd.name = "input_ids"}, ...)
    // with shard=dp2 becomes
    nd.mesh @mesh axes [#nd.axis<"dp" = 2, replicate>]
    func.func @step(%ids: tensor<8x16xi64> {nd.kind = "input", nd.name = "input_ids", nd.sharding = #nd.sharding<@mesh, [{"dp"}, {} ]>}, ...)
    ```
  }];
  let options = [Option<"shard", "shard", "std::string", "\"\"", "the mesh: axes with sizes, as in dp2,tp2">,
                 Option<"ranks", "ranks", "int64_t", "0", "number of ranks; 0: the mesh says how many">,
                 ListOption<"annotations", "annotate", "std::string", "shardings of parameters and inputs, as GLOB=[tp,_]">,
                 Option<"zero", "zero", "int64_t", "3", "what fsdp shards: 1, 2 the optimizer's state, 3 parameters too">,
                 Option<"keepGathered", "keep-gathered", "bool", "false", "keep parameters that forward gathered for backward">,
                 Option<"fsdpUnit", "fsdp-unit", "std::string", "\"block\"",
                        "parameters that are gathered together: block, whole, or a glob over paths of modules">,
                 Option<"cpMode", "cp", "std::string", "\"auto\"", "how ranks share a sequence: auto, ring, gather, ulysses">,
                 Option<"sequenceParallel", "sequence-parallel", "bool", "true",
                        "shard the sequence over the tensor axes between tensor-parallel products">,
                 Option<"systemName", "system", "std::string", "\"host\"", "what the step runs on: a system's name, or a file">,
                 Option<"nodes", "nodes", "int64_t", "0", "nodes that the ranks fill; 0: as few as the system needs">];
  let dependentDialects = ["::nd::NDDialect"];
}

def PropagateSharding : Pass<"nd-propagate-sharding", "::mlir::ModuleOp"> {
  let summary = "decide on which axes every operation runs, from the annotations";
  let description = [{
    Annotations give axes to classes of dimensions (all dimensions that the rules of the operations say are one thing), and these to the factors of each operation's
    rule. An axis belongs to one factor of an operation: dimensions of parameters come before the sequence, and among two annotations the larger tensor's wins; inserting
    reshards settles the rest. Between tensor-parallel products the sequence is sharded over the tensor axes too, unless `nd.plan` says otherwise. Operations behind
    the gradients run on the shards of the optimizer's state.

    The decision is an attribute `nd.factor_axes` on every operation, a list of axes for each factor: types follow in `nd-insert-reshards`, since `arith` refuses
    operands that differ in their encoding. An operation without a rule is an error.

    Where the tensor axes shard all that is computed on words of the vocabulary, the module gets `nd.promises` with `vocabulary_width`,
    the words of a shard: no rank will have more (`nd-verify-footprint`).
  }];
  let dependentDialects = ["::nd::NDDialect"];
}

def InsertReshards : Pass<"nd-insert-reshards", "::mlir::ModuleOp"> {
  let summary = "put shardings into types, and reshards where a use needs another one";
  let description = [{
    From here on the state of a value is its type: every tensor has an encoding `#nd.sharding`. Each operation runs on one assignment of axes to factors;
    an operand that is sharded otherwise gets an `nd.reshard`. A sum over a sharded factor leaves the result unreduced; linear operations carry that
    on as long as it does not grow (both addends of an `arith.addf` unreduced, a reshape, `nd.scale`), everything else needs the value reduced. Where
    terms of a sum are partial alike and others are whole, the partial ones are added first, so that one reduction does for them. A value that any
    use needs reduced is reduced once, where it is computed, so that communication can start.
  }];
  let dependentDialects = ["::nd::NDDialect", "::mlir::arith::ArithDialect"];
}

def Partition : Pass<"nd-partition", "::mlir::ModuleOp"> {
  let summary = "turn the global view into the program of one rank";
  let description = [{
    Types become those of a rank's shard, without encoding; `nd.reshard` becomes collectives; `nd.scale` becomes a product. Arguments and results keep `nd.sharding`
    and get `nd.global_shape`, an array of their global sizes. All ranks run this one program.

    ```mlir
    %1 = nd.reshard %0 ... : tensor<4xf32, #nd.sharding<@mesh, [{} ], unreduced = sum {"dp"}>> -> tensor<4xf32, #nd.sharding<@mesh, [{} ]>>
    // becomes
    %1 = nd.all_reduce sum %0 over @mesh ["dp"] ... : tensor<4xf32>
    ```
  }];
  let dependentDialects = ["::nd::NDDialect", "::mlir::arith::ArithDialect"];
}

def LowerShardAxes : Pass<"nd-lower-shard-axes", "::mlir::ModuleOp"> {
  let summary = "compute places of shards from the coordinates of the rank";
  let description = [{
    Operations of a rank's program that have a shard of a dimension and know places along it (`shard_axes` of `nd.iota`, `nd.take`,
    `nd.scatter_add`) become plain ones: indices are shifted by the first place of the shard, rows of other ranks read as zeros, and updates of
    them are dropped. The coordinates are arguments of kind `coordinate`, named as their mesh axes, that the runtime fills; so all ranks run one
    program.

    ```mlir
    %0 = nd.iota dim = 0 {shard_axes = ["tp"]} : tensor<4xi64>
    // becomes
    %1 = nd.iota dim = 0 : tensor<4xi64>
    %2 = arith.addi %1, %first : tensor<4xi64>      // %first = 4 * the argument "tp", everywhere
    ```
  }];
  let dependentDialects = ["::nd::NDDialect", "::mlir::arith::ArithDialect"];
}

def VerifySharding : Pass<"nd-verify-sharding", "::mlir::ModuleOp"> {
  let summary = "recompute the state of every value and compare";
  let description = [{
    In the global view, after `nd-insert-reshards`: for every operation, the factors' axes are recomputed from its operands and the results' shardings and unreduced
    axes from these; a type that differs, an operand that is unreduced where the operation is not linear in it, an axis that a dimension cannot have,
    or a boundary that differs from its annotation is an error.

    In the local view, after `nd-partition`: starting from the shardings of the arguments, the same states are followed through the local operations and the
    collectives to the results, so that a forgotten, doubled or misplaced reduction is an error. Instances of collectives are distinct.
  }];
}

def StripSharding : Pass<"nd-strip-sharding", "::mlir::ModuleOp"> {
  let summary = "make the global view a program of one rank";
  let description = [{
    To execute a stage before `nd-partition` and compare it (`nd-opt --bisect`): encodings, shardings and the mesh go, reshards and `nd.as_partial` become
    their operands, `nd.scale` a product. What is stored with padding stays so: `nd.blocks` of several ranks become an order of rows of one. A rank's
    program is left as it is.
  }];
  let dependentDialects = ["::nd::NDDialect", "::mlir::arith::ArithDialect"];
}

def PrintShardingRules : Pass<"nd-print-sharding-rules", "::mlir::ModuleOp"> {
  let summary = "print the sharding rule of every operation as a remark";
  let description = [{
    `([i0, i1], [i1]) -> ([i0]) {i0=8, i1=4} reduction={i1:sum} linear={0, 1}`: factors of each operand's and result's dimensions, their sizes, which are
    summed over or need replication, and in which operands the operation is linear. Only for tests and for reading.
  }];
}

def ExpandRingAttention : Pass<"nd-expand-ring-attention", "::mlir::ModuleOp"> {
  let summary = "attention whose keys go around the ranks becomes one attention for each step, and hops between them";
  let description = [{
    Works on a rank's program: `nd.attention` and `nd.attention_grad` with `cp_mode = "ring"`, whose keys and values are shards along `seq_axes`. With c
    ranks, keys and values make c - 1 hops forward and c - 1 backward, and so do their gradients, in f32. A step at which no rank has a query that sees a
    key by position (causal, window, padding) is left out.

    ```mlir
    %o, %lse = nd.attention %q, %k, %v scale = 0.125 causal {cp_mode = "ring", key_shards = 2 : i64, seq_axes = ["cp"]} : ...
    // becomes
    %k1 = nd.permute %k over @mesh ["cp"] sources = array<i64: 1, 0> ...
    %v1 = nd.permute %v over @mesh ["cp"] sources = array<i64: 1, 0> ...
    %o0, %lse0 = nd.attention %q, %k, %v scale = 0.125 causal {key_shards = 2 : i64, seq_axes = ["cp"]} : ...
    %o, %lse = nd.attention %q, %k1, %v1 carry(%o0, %lse0 : ...) scale = 0.125 causal {key_shards = 2 : i64, ring_step = 1 : i64, seq_axes = ["cp"]} : ...
    ```
  }];
  let dependentDialects = ["::nd::NDDialect", "::mlir::arith::ArithDialect"];
}

#endif // ND_SHARDING_PASSES_TD
