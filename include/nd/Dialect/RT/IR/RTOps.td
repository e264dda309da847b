//===- RTOps.td - Operations of the rt dialect --------------*- tablegen -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_DIALECT_RT_IR_RTOPS_TD
#define ND_DIALECT_RT_IR_RTOPS_TD

include "nd/Dialect/RT/IR/RTDialect.td"

//===----------------------------------------------------------------------===//
// Programs and memory
//===----------------------------------------------------------------------===//

def RT_ProgramOp : RT_Op<"program", [IsolatedFromAbove, NoTerminator, SingleBlock, Symbol]> {
  let summary = "one step of one rank";
  let description = [{
    The body is a straight line of `rt` operations and loops of them (`rt.repeat`). After `rt-plan-memory` it says how large the arena is
    (`arena_bytes`), the largest sum of bytes live at one time (`peak_live_bytes`), the part of the arena at fixed
    offsets (`fixed_bytes`), and what of its end the transport has for partial sums on their way to another node
    (`staging_bytes`, none where there are none).
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, OptionalAttr<I64Attr>:$arena_bytes,
                       OptionalAttr<I64Attr>:$peak_live_bytes, OptionalAttr<I64Attr>:$fixed_bytes,
                       OptionalAttr<I64Attr>:$staging_bytes);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$sym_name attr-dict-with-keyword $body";
  let skipDefaultBuilders = 1;
  let builders = [OpBuilder<(ins "::llvm::StringRef":$name)>];
  let hasVerifier = 1;
}

def RT_TensorOp : RT_Op<"tensor", [MemoryEffects<[MemAlloc]>]> {
  let summary = "a named tensor of the program, which is outside of the step what an argument or result is in it";
  let description = [{
    `kind` is the `nd.kind` of the argument or result it stands for; a state tensor, argument and result, is one
    `rt.tensor`. The type is this rank's; `global_shape` and `dim_axes` (names of the mesh axes that shard each
    dimension, major to minor) say which part of the global tensor it is, with `dim_blocks` (logical elements in a block of
    each of these axes, major to minor; empty: what the local size says). `units` is the order in which dimension `units_dim` is
    stored: place i, shard after shard, holds the i-th of these logical units of `unit_size` elements, zeros where it is -1.
    `pad_value` fills an input beyond the logical size. Integers of an input lie in [0, bound), or
    equal `ignore`. The contents of an `output` are undefined until the step writes it; those of other tensors last from
    step to step. `info` is carried into the manifest.
  }];
  let arguments = (ins StrAttr:$kind, StrAttr:$tensor_name, OptionalAttr<I64Attr>:$offset,
                       OptionalAttr<DenseI64ArrayAttr>:$global_shape, OptionalAttr<ArrayAttr>:$dim_axes,
                       OptionalAttr<ArrayAttr>:$dim_blocks, OptionalAttr<DenseI64ArrayAttr>:$units, OptionalAttr<I64Attr>:$units_dim,
                       OptionalAttr<I64Attr>:$unit_size, OptionalAttr<I64Attr>:$pad_value,
                       OptionalAttr<I64Attr>:$bound, OptionalAttr<I64Attr>:$ignore, OptionalAttr<DictionaryAttr>:$info,
                       UnitAttr:$output);
  let results = (outs RT_Buffer:$buffer);
  let assemblyFormat = "(`output` $output^)? $kind $tensor_name (`at` $offset^)? attr-dict `:` type($buffer)";
  let hasVerifier = 1;
}

def RT_BufferOp : RT_Op<"buffer", [MemoryEffects<[MemAlloc]>]> {
  let summary = "a temporary";
  let description = [{
    Its contents are undefined until written. It occupies the arena from its first use to its last.
  }];
  let arguments = (ins OptionalAttr<I64Attr>:$offset);
  let results = (outs RT_Buffer:$buffer);
  let assemblyFormat = "(`at` $offset^)? attr-dict `:` type($buffer)";
  let hasVerifier = 1;
}

def RT_ConstantOp : RT_Op<"constant", [Pure]> {
  let summary = "read-only data of the executable";
  let arguments = (ins ElementsAttr:$value);
  let results = (outs RT_Buffer:$buffer);
  let assemblyFormat = "$value attr-dict `->` type($buffer)";
  let hasVerifier = 1;
}

def RT_ViewOp : RT_Op<"view", [Pure]> {
  let summary = "elements of a root under another shape, strides and offset";
  let description = [{
    The layout of the result is absolute: it counts elements from the start of the root.

    ```mlir
    %q = rt.view %qkv : memref<2x8x96xf32> to memref<2x4x8x8xf32, strided<[768, 8, 96, 1], offset: 0>>
    ```
  }];
  let arguments = (ins RT_Buffer:$source);
  let results = (outs RT_Buffer:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `to` type($result)";
  let hasVerifier = 1;
}

def RT_RepeatOp : RT_Op<"repeat", [NoTerminator, SingleBlock]> {
  let summary = "a loop of `count` turns";
  let description = [{
    Each argument of the region is, in turn i, row i of a `sliced` buffer, which is contiguous and has `count` rows; views
    of it count elements from the start of the row. Everything else that the region reads or writes is a buffer of the
    program, the same in every turn. Nothing is allocated per turn.

    ```mlir
    rt.repeat count = 3 sliced(%ids : memref<3x2x8xi64>) {
    ^bb0(%row: memref<2x8xi64>):
      rt.launch @embed ins(%row, %table : memref<2x8xi64>, memref<512x64xf32>) outs(%x : memref<2x8x64xf32>)
          in_place = array<i64: -1>
    }
    ```
  }];
  let arguments = (ins ConfinedAttr<I64Attr, [IntPositive]>:$count, Variadic<RT_Buffer>:$sliced);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "`count` `=` $count (`sliced` `(` $sliced^ `:` type($sliced) `)`)? attr-dict-with-keyword $body";
  let skipDefaultBuilders = 1;
  let builders = [OpBuilder<(ins "int64_t":$count, "::mlir::ValueRange":$sliced)>];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

def RT_KernelOp : RT_Op<"kernel", [IsolatedFromAbove, NoTerminator, SingleBlock, Symbol]> {
  let summary = "a kernel to generate: an nd.kernel with the layouts of its operands and results";
  let description = [{
    The body holds one `nd.kernel` of the block's arguments. `input_types` and `result_types` are the memrefs that
    launches pass. `in_place` has one entry per result: the operand it overwrites, or -1.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypeArrayAttr:$input_types, TypeArrayAttr:$result_types,
                       DenseI64ArrayAttr:$in_place);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $sym_name `inputs` $input_types `results` $result_types `in_place` `=` $in_place attr-dict-with-keyword $body
  }];
  let hasVerifier = 1;
}

def RT_LaunchOp : RT_Op<"launch", [AttrSizedOperandSegments, DeclareOpInterfaceMethods<SymbolUserOpInterface>,
                                   DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "runs a kernel";
  let description = [{
    `outputs` are the results that are not computed in place of an input. `in_place` is the kernel's. `workspace` is
    memory that all threads share during the launch.
  }];
  let arguments = (ins FlatSymbolRefAttr:$kernel, Variadic<RT_Buffer>:$inputs, Variadic<RT_Buffer>:$outputs,
                       Optional<RT_Buffer>:$workspace, DenseI64ArrayAttr:$in_place);
  let assemblyFormat = [{
    $kernel `ins` `(` ($inputs^ `:` type($inputs))? `)` `outs` `(` ($outputs^ `:` type($outputs))? `)`
    (`workspace` `(` $workspace^ `:` type($workspace) `)`)? `in_place` `=` $in_place attr-dict
  }];
}

//===----------------------------------------------------------------------===//
// Library operations
//===----------------------------------------------------------------------===//

def RT_GemmOp : RT_Op<"gemm", [DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "c = a b (+ bias) (+ c)";
  let description = [{
    `a` is [M, K], `b` [K, N], `c` [M, N], or all three with a leading batch dimension; `bias` is [N]. Layouts say the
    rest: one of the two inner strides of `a` and of `b` is 1, so that a transposed operand is a view; rows of `c` are
    contiguous.
  }];
  let arguments = (ins RT_FloatBuffer:$a, RT_FloatBuffer:$b, Optional<RT_FloatBuffer>:$bias, RT_FloatBuffer:$c,
                       UnitAttr:$accumulate);
  let assemblyFormat = [{
    $a `,` $b (`bias` `(` $bias^ `)`)? `into` $c (`accumulate` $accumulate^)? attr-dict
    `:` type($a) `,` type($b) (`bias` type($bias)^)? `into` type($c)
  }];
  let hasVerifier = 1;
}

/// The options of nd.attention in a rank's program.
defvar RT_AttentionOptions = (ins
    F64Attr:$scale, UnitAttr:$causal, DefaultValuedAttr<I64Attr, "0">:$window, DefaultValuedAttr<F64Attr, "0.0">:$softcap,
    OptionalAttr<DenseI64ArrayAttr>:$order, DefaultValuedAttr<I64Attr, "0">:$valid, OptionalAttr<DenseI64ArrayAttr>:$kv_map,
    OptionalAttr<StrArrayAttr>:$seq_axes, OptionalAttr<StrArrayAttr>:$head_axes,
    DefaultValuedAttr<I64Attr, "1">:$key_shards, DefaultValuedAttr<I64Attr, "0">:$ring_step);

class RT_AttentionBase<string mnemonic> : RT_Op<mnemonic, [AttrSizedOperandSegments,
      DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let extraClassDeclaration = [{
    /// Operands that the operation writes.
    ::llvm::SmallVector<::mlir::OpOperand *> getWritten();
  }];
  let hasVerifier = 1;
}

def RT_AttentionOp : RT_AttentionBase<"attention"> {
  let summary = "nd.attention on buffers";
  let description = [{
    The innermost stride of query, key, value and result is 1; everything else is contiguous, the mask strided.
  }];
  let arguments = !con((ins RT_FloatBuffer:$query, RT_FloatBuffer:$key, RT_FloatBuffer:$value,
      Optional<RT_Buffer>:$positions,
      Optional<RT_Buffer>:$documents, Optional<RT_Buffer>:$key_padding, Optional<RT_Buffer>:$mask,
      Optional<RT_FloatBuffer>:$carry_result, Optional<RT_FloatBuffer>:$carry_lse,
      RT_FloatBuffer:$result, RT_FloatBuffer:$lse), RT_AttentionOptions);
  let assemblyFormat = [{
    `ins` `(` $query `,` $key `,` $value `)` (`positions` `(` $positions^ `:` type($positions) `)`)?
    (`documents` `(` $documents^ `:` type($documents) `)`)? (`key_padding` `(` $key_padding^ `:` type($key_padding)
      `)`)?
    (`mask` `(` $mask^ `:` type($mask) `)`)?
    (`carry` `(` $carry_result^ `,` $carry_lse `:` type($carry_result) `,` type($carry_lse) `)`)?
    `outs` `(` $result `,` $lse `)` `scale` `=` $scale (`causal` $causal^)?
      attr-dict
    `:` type($query) `,` type($key) `,` type($value) `->` type($result) `,` type($lse)
  }];
}

def RT_AttentionGradOp : RT_AttentionBase<"attention_grad"> {
  let summary = "nd.attention_grad on buffers";
  let arguments = !con((ins RT_FloatBuffer:$query, RT_FloatBuffer:$key, RT_FloatBuffer:$value, RT_FloatBuffer:$result,
      RT_FloatBuffer:$lse, RT_FloatBuffer:$result_grad, Optional<RT_Buffer>:$positions, Optional<RT_Buffer>:$documents,
      Optional<RT_Buffer>:$key_padding, Optional<RT_Buffer>:$mask, RT_FloatBuffer:$query_grad, RT_FloatBuffer:$key_grad,
      RT_FloatBuffer:$value_grad), RT_AttentionOptions);
  let assemblyFormat = [{
    `ins` `(` $query `,` $key `,` $value `,` $result `,` $lse `,` $result_grad `)`
    (`positions` `(` $positions^ `:` type($positions) `)`)? (`documents` `(` $documents^ `:` type($documents) `)`)?
    (`key_padding` `(` $key_padding^ `:` type($key_padding) `)`)? (`mask` `(` $mask^ `:` type($mask) `)`)?
    `outs` `(` $query_grad `,` $key_grad `,` $value_grad `)` `scale` `=` $scale (`causal` $causal^)? attr-dict
    `:` type($query) `,` type($key) `,` type($value) `,` type($result) `,` type($lse) `,` type($result_grad)
    `->` type($query_grad) `,` type($key_grad) `,` type($value_grad)
  }];
}

//===----------------------------------------------------------------------===//
// Movement
//===----------------------------------------------------------------------===//

def RT_CopyOp : RT_Op<"copy"> {
  let summary = "copies contiguous memory";
  let arguments = (ins Arg<RT_Buffer, "", [MemRead]>:$source, Arg<RT_Buffer, "", [MemWrite]>:$target);
  let assemblyFormat = "$source `to` $target attr-dict `:` type($source) `to` type($target)";
  let hasVerifier = 1;
}

def RT_FillZeroOp : RT_Op<"fill_zero"> {
  let summary = "zeroes contiguous memory";
  let arguments = (ins Arg<RT_Buffer, "", [MemWrite]>:$target);
  let assemblyFormat = "$target attr-dict `:` type($target)";
  let hasVerifier = 1;
}

def RT_CollectiveStartOp : RT_Op<"collective_start", [AttrSizedOperandSegments]> {
  let summary = "starts a collective over the ranks along the named mesh axes, major to minor";
  let description = [{
    Each source goes to the target at the same place. Memory is contiguous and belongs to the transport until the wait;
    source and target of an all-reduce may be equal. `dims` says around which dimension shards are cut and joined: one
    per operand of an all-gather or reduce-scatter, the split and the concatenated one of an all-to-all. Position i
    receives what position `permutation[i]` has. `name` says for messages what is moved, `reason` what asked for it.
    Collectives of a program start in the same order on all ranks.

    ```mlir
    %e = rt.collective_start all_gather ins(%w : memref<4x64xf32>) outs(%whole : memref<8x64xf32>) axes = ["fsdp"]
        dims = [0] reduction = sum name = "w"
    ```
  }];
  let arguments = (ins RT_CollectiveKindAttr:$kind, Arg<Variadic<RT_Buffer>, "", [MemRead]>:$sources,
                       Arg<Variadic<RT_Buffer>, "", [MemWrite]>:$targets, StrArrayAttr:$axes,
                       DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$dims,
                       DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$permutation, RT_ReductionAttr:$reduction,
                       StrAttr:$name, OptionalAttr<StrAttr>:$reason, UnitAttr:$scalar);
  let results = (outs RT_EventType:$event);
  let assemblyFormat = [{
    $kind `ins` `(` $sources `:` type($sources) `)` `outs` `(` $targets `:` type($targets) `)` `axes` `=` $axes
    (`dims` `=` $dims^)? (`permutation` `=` $permutation^)? `reduction` `=` $reduction `name` `=` $name
    (`reason` `=` $reason^)? (`scalar` $scalar^)? attr-dict
  }];
  let extraClassDeclaration = [{
    /// Elements of the whole tensors on this rank: the sources, of an all-gather the targets.
    int64_t getPayloadElements();
  }];
  let hasVerifier = 1;
}

def RT_AllSliceOp : RT_Op<"all_slice"> {
  let summary = "copies this rank's part of a tensor that the ranks along the named axes hold whole";
  let description = [{
    Both are contiguous; the part is cut along `dim`.
  }];
  let arguments = (ins Arg<RT_Buffer, "", [MemRead]>:$source, Arg<RT_Buffer, "", [MemWrite]>:$target,
                       StrArrayAttr:$axes, I64Attr:$dim);
  let assemblyFormat = "$source `to` $target `axes` `=` $axes `dim` `=` $dim attr-dict `:` type($source) `to` type($target)";
  let hasVerifier = 1;
}

def RT_WaitOp : RT_Op<"wait"> {
  let summary = "waits until a collective has finished; exactly one per start";
  let arguments = (ins RT_EventType:$event);
  let assemblyFormat = "$event attr-dict";
}

def RT_PhaseOp : RT_Op<"phase"> {
  let summary = "a new phase of the step begins";
  let arguments = (ins RT_PhaseAttr:$phase);
  let assemblyFormat = "$phase attr-dict";
}

#endif // ND_DIALECT_RT_IR_RTOPS_TD
