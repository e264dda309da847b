//===- NDCompositeOps.td - Composites of neural networks ----*- tablegen -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_DIALECT_ND_IR_NDCOMPOSITEOPS_TD
#define ND_DIALECT_ND_IR_NDCOMPOSITEOPS_TD

include "nd/Dialect/ND/IR/NDDialect.td"

def ND_SoftmaxOp : ND_DifferentiableCompositeOp<"softmax", [AllTypesMatch<["input", "result"]>]> {
  let summary = "exp(x - max) / sum over `dim`";
  let arguments = (ins ND_FloatTensor:$input, I64Attr:$dim);
  let results = (outs ND_FloatTensor:$result);
  let assemblyFormat = "$input `dim` `=` $dim attr-dict `:` type($input)";
  let hasVerifier = 1;
}

def ND_LayerNormOp : ND_DifferentiableCompositeOp<"layer_norm", [AllTypesMatch<["input", "result"]>, AllTypesMatch<["mean", "rstd"]>]> {
  let summary = "(x - mean) * rstd * weight + bias over the last dimension";
  let description = [{
    Variance is the mean of squared deviations. `mean` and `rstd` = 1/sqrt(variance + eps) are f32 and lack the last
    dimension; the backward reads them.
  }];
  let arguments = (ins ND_FloatTensor:$input, ND_FloatTensor:$weight, Optional<ND_FloatTensor>:$bias, F64Attr:$eps);
  let results = (outs ND_FloatTensor:$result, ND_FloatTensor:$mean, ND_FloatTensor:$rstd);
  let assemblyFormat = [{
    $input `,` $weight (`,` $bias^)? `eps` `=` $eps attr-dict
    `:` type($input) `,` type($weight) (`,` type($bias)^)? `->` type($mean)
  }];
  let extraClassDeclaration = [{ int64_t getWidth() { return getInput().getType().getShape().back(); } }];
  let hasVerifier = 1;
}

def ND_RmsNormOp : ND_DifferentiableCompositeOp<"rms_norm", [AllTypesMatch<["input", "result"]>]> {
  let summary = "x * rstd * weight over the last dimension, rstd = 1/sqrt(mean(x^2) + eps)";
  let arguments = (ins ND_FloatTensor:$input, Optional<ND_FloatTensor>:$weight, F64Attr:$eps);
  let results = (outs ND_FloatTensor:$result, ND_FloatTensor:$rstd);
  let assemblyFormat = [{
    $input (`,` $weight^)? `eps` `=` $eps attr-dict `:` type($input) (`,` type($weight)^)? `->` type($rstd)
  }];
  let hasVerifier = 1;
}

def ND_RopeOp : ND_DifferentiableCompositeOp<"rope", [AllTypesMatch<["input", "result"]>, AllTypesMatch<["cos", "sin"]>]> {
  let summary = "rotates pairs of the last dimension by an angle per position";
  let description = [{
    `input` is [B, H, S, D]; `cos` and `sin` are [B, S, R/2] with R <= D; the first R elements of D are rotated, the rest
    pass. Pairs are (i, i + R/2), or (2i, 2i + 1) when `interleaved`: (a, b) -> (a cos - b sin, b cos + a sin).
  }];
  let arguments = (ins ND_FloatTensor:$input, ND_FloatTensor:$cos, ND_FloatTensor:$sin, UnitAttr:$interleaved);
  let results = (outs ND_FloatTensor:$result);
  let assemblyFormat = "$input `,` $cos `,` $sin (`interleaved` $interleaved^)? attr-dict `:` type($input) `,` type($cos)";
  let hasVerifier = 1;
}

/// What attention and its gradient share behind their operands. From `order` on: how the sequence is stored and which
/// part of it this rank has.
defvar ND_AttentionOptions = (ins
    F64Attr:$scale, UnitAttr:$causal, DefaultValuedAttr<I64Attr, "0">:$window, DefaultValuedAttr<F64Attr, "0.0">:$softcap,
    OptionalAttr<DenseI64ArrayAttr>:$order, DefaultValuedAttr<I64Attr, "0">:$valid, OptionalAttr<DenseI64ArrayAttr>:$kv_map,
    OptionalAttr<StrAttr>:$cp_mode, OptionalAttr<StrArrayAttr>:$seq_axes, OptionalAttr<StrArrayAttr>:$head_axes,
    DefaultValuedAttr<I64Attr, "1">:$key_shards, DefaultValuedAttr<I64Attr, "0">:$ring_step);

defvar ND_AttentionDeclarations = [{
  /// Keys of all shards: the length that `order`, `valid` and what is whole in the sequence refer to.
  int64_t getSequenceLength() { return getKey().getType().getDimSize(2) * static_cast<int64_t>(getKeyShards()); }
  /// Whether keys and values are shards that go around the ranks of `seq_axes`.
  bool isRing() { return getCpMode() == "ring"; }
  /// Whether it holds a part of the sequence or of the heads, by this rank's coordinates.
  bool isLocalForm() { return getSeqAxes() || getHeadAxes() || getKeyShards() != 1; }
}];

def ND_AttentionOp : ND_DifferentiableCompositeOp<"attention", [AttrSizedOperandSegments]> {
  let summary = "softmax(scale * q k^T + mask) v";
  let description = [{
    `query` is [B, Hq, S, D], `key` [B, Hkv, T, D], `value` [B, Hkv, T, Dv] with Hq a multiple of Hkv; the result is
    [B, Hq, S, Dv]. `lse` [B, Hq, S] in f32 is the log of the sum of exponentials that the backward reads.

    A key is visible to a query when all that are given agree: `causal` (key position <= query position), `window` w > 0
    (query position - key position < w), equal `documents` [B, S] (i64), `key_padding` [B, T] (true = visible). Positions are the indices
    unless `positions` [B, S] is given. `mask` is a general mask that broadcasts to [B, Hq, S, T] from [B or 1, Hq or 1, S or 1, T]: added
    when of floats, true = visible when of booleans. `softcap` c > 0 replaces a score s by c * tanh(s / c) before masking.
    A query that sees no key yields zeros, and its `lse` is -inf.

    `order` [n] says that the sequence is stored as n equal chunks, the chunk at place i being number order[i] of the
    original sequence; the index of a query or key is the original one. Other operands are in stored order too. Keys of index
    `valid` (when not 0) and above are padding and invisible. `kv_map` gives each query head its key head, where heads
    are no regular groups; -1 = the query head is padding: zeros, `lse` -inf.

    `cp_mode` says how ranks share the sequence: "gather" (keys whole), "ring" (keys go around, `nd-expand-ring-attention`)
    or "ulysses" (heads are exchanged for the sequence).

    In a rank's program the queries are this rank's shard along the mesh axes `seq_axes`, major to minor, of the stored
    sequence; `head_axes` shard the query heads, and `kv_map` still lists all of them: its entry modulo the local key heads
    is the local one. The keys are whole (`key_shards` = 1), or the shard of coordinate (own - ring_step) modulo
    `key_shards`; positions, documents, padding and mask are whole in the sequence. `carry` is the result over the
    keys of the shards before: it is merged in, as if all keys had been seen at once. The result may be f32 where the operands are
    bf16, so that merging loses nothing.
  }];
  let arguments = !con((ins ND_FloatTensor:$query, ND_FloatTensor:$key, ND_FloatTensor:$value,
      Optional<ND_IntTensor>:$positions, Optional<ND_IntTensor>:$documents, Optional<ND_BoolTensor>:$key_padding,
      Optional<ND_Tensor>:$mask, Optional<ND_FloatTensor>:$carry_result, Optional<ND_FloatTensor>:$carry_lse),
      ND_AttentionOptions);
  let results = (outs ND_FloatTensor:$result, ND_FloatTensor:$lse);
  let assemblyFormat = [{
    $query `,` $key `,` $value (`positions` `(` $positions^ `:` type($positions) `)`)?
    (`documents` `(` $documents^ `:` type($documents) `)`)? (`key_padding` `(` $key_padding^ `:` type($key_padding) `)`)?
    (`mask` `(` $mask^ `:` type($mask) `)`)?
    (`carry` `(` $carry_result^ `,` $carry_lse `:` type($carry_result) `,` type($carry_lse) `)`)?
    `scale` `=` $scale (`causal` $causal^)? attr-dict
    `:` type($query) `,` type($key) `,` type($value) `->` type($result) `,` type($lse)
  }];
  let builders = [
    /// Of the whole sequence in its natural order.
    OpBuilder<(ins "::mlir::Type":$result, "::mlir::Type":$lse, "::mlir::Value":$query, "::mlir::Value":$key,
        "::mlir::Value":$value, "::mlir::Value":$positions, "::mlir::Value":$documents, "::mlir::Value":$key_padding,
        "::mlir::Value":$mask, "const ::llvm::APFloat &":$scale, "bool":$causal, "int64_t":$window,
        "const ::llvm::APFloat &":$softcap)>];
  let extraClassDeclaration = ND_AttentionDeclarations;
  let hasVerifier = 1;
}

def ND_AttentionGradOp : ND_CompositeOp<"attention_grad", [AttrSizedOperandSegments]> {
  let summary = "gradient of attention with respect to query, key and value";
  let description = [{
    Recomputes the probabilities from `lse`; `result` and `result_grad` are [B, Hq, S, Dv]. The mask receives no gradient.
    Options are those of nd.attention. `result` and `lse` are those over all keys; where the keys are a shard, the
    results are that shard's contributions. The gradients of keys and values are sums over queries, which ranks may share:
    they are f32, whatever the operands are; the queries' gradient may be.
  }];
  let arguments = !con((ins ND_FloatTensor:$query, ND_FloatTensor:$key, ND_FloatTensor:$value, ND_FloatTensor:$result,
      ND_FloatTensor:$lse, ND_FloatTensor:$result_grad,
      Optional<ND_IntTensor>:$positions, Optional<ND_IntTensor>:$documents, Optional<ND_BoolTensor>:$key_padding,
      Optional<ND_Tensor>:$mask), ND_AttentionOptions);
  let results = (outs ND_FloatTensor:$query_grad, ND_FloatTensor:$key_grad, ND_FloatTensor:$value_grad);
  let assemblyFormat = [{
    $query `,` $key `,` $value `result` `(` $result `,` $lse `,` $result_grad `)`
    (`positions` `(` $positions^ `:` type($positions) `)`)?
    (`documents` `(` $documents^ `:` type($documents) `)`)? (`key_padding` `(` $key_padding^ `:` type($key_padding) `)`)?
    (`mask` `(` $mask^ `:` type($mask) `)`)? `scale` `=` $scale (`causal` $causal^)? attr-dict
    `:` type($query) `,` type($key) `,` type($value) `,` type($result) `,` type($lse) `,` type($result_grad)
    `->` type($query_grad) `,` type($key_grad) `,` type($value_grad)
  }];
  let extraClassDeclaration = ND_AttentionDeclarations;
  let hasVerifier = 1;
}

def ND_SoftmaxCrossEntropyOp : ND_DifferentiableCompositeOp<"softmax_cross_entropy", [AllTypesMatch<["losses", "lse"]>]> {
  let summary = "negative log-likelihood of the label under softmax(logits), per row";
  let description = [{
    `logits` is [..., V] with one or more leading dimensions, `labels` [...] of integers; `losses` [...] is 0 where the label is
    `ignore_index`; `lse` [...] is the log of the sum of exponentials. Both are f32. A label that is neither in [0, V) nor
    `ignore_index` is refused by the loader.
  }];
  let arguments = (ins ND_FloatTensor:$logits, ND_IntTensor:$labels, I64Attr:$ignore_index);
  let results = (outs ND_FloatTensor:$losses, ND_FloatTensor:$lse);
  let assemblyFormat = "$logits `,` $labels `ignore` `=` $ignore_index attr-dict `:` type($logits) `,` type($labels) `->` type($losses)";
  let hasVerifier = 1;
}

def ND_SoftmaxCrossEntropyGradOp : ND_CompositeOp<"softmax_cross_entropy_grad", [AllTypesMatch<["logits", "logits_grad"]>, AllTypesMatch<["lse", "losses_grad"]>]> {
  let summary = "(softmax(logits) - onehot(label)) * losses_grad, 0 in ignored rows";
  let arguments = (ins ND_FloatTensor:$logits, ND_IntTensor:$labels, ND_FloatTensor:$lse, ND_FloatTensor:$losses_grad,
                       I64Attr:$ignore_index);
  let results = (outs ND_FloatTensor:$logits_grad);
  let assemblyFormat = [{
    $logits `,` $labels `,` $lse `,` $losses_grad `ignore` `=` $ignore_index attr-dict
    `:` type($logits) `,` type($labels) `,` type($lse)
  }];
  let hasVerifier = 1;
}

def ND_DropoutOp : ND_PureOp<"dropout", [AllTypesMatch<["input", "result"]>]> {
  let summary = "zeroes elements with probability p and scales the others by 1/(1-p)";
  let description = [{
    Import keeps it; p = 0 folds away. Training with p > 0 is refused until the counter-based generator exists.
  }];
  let arguments = (ins ND_FloatTensor:$input, F64Attr:$p);
  let results = (outs ND_FloatTensor:$result);
  let assemblyFormat = "$input `p` `=` $p attr-dict `:` type($input)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

#endif // ND_DIALECT_ND_IR_NDCOMPOSITEOPS_TD
