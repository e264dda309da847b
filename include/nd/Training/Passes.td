//===- Passes.td - From a model to its training step --------*- tablegen -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_TRAINING_PASSES_TD
#define ND_TRAINING_PASSES_TD

include "mlir/Pass/PassBase.td"

def RecordStep : Pass<"nd-record-step", "::mlir::ModuleOp"> {
  let summary = "record the options of the training step in the module";
  let description = [{
    Sets the module's attribute `nd.step` to a dictionary, given as text: what later stages and the runtime need to
    know of the command line (optimizer, schedule, seed). Of a model with `batch` and `seq`, `nd.model` gets `flops_per_token`:
    the FLOPs of forward and backward as published figures count them, for MFU.

    Example: `--nd-record-step='record={optimizer = "adamw", lr = 1.0e-4 : f64}'`.
  }];
  let options = [Option<"record", "record", "std::string", "", "entries of a dictionary attribute, as text">];
}

def MixedPrecision : Pass<"nd-mixed-precision", "::mlir::ModuleOp"> {
  let summary = "compute @forward in bf16, on weights that stay f32";
  let description = [{
    Weights stay f32 arguments. A trainable weight is rounded to bf16 once, by one `arith.truncf` on the argument itself
    (what FSDP gathers is its result), and every reader takes that. Matrix products, norms, rotary embeddings and
    attention then read and write bf16, with f32 inside; so do gathers of weights. Elementwise arithmetic, softmax and
    reductions stay in f32 and are rounded where a bf16 operation reads them, for all readers alike: one rounding at the
    end of a chain. The loss, statistics, and what no weight is part of (positions, rotary tables, masks) stay f32, and
    so does the type of every result.

    Runs before `nd-add-loss`: the backward follows by differentiation. A weight's gradient leaves its matrix product,
    its reduction or its scatter in f32, and is never rounded to bf16.

    ```mlir
    %0 = nd.dot_general %x, %w contract = [1] x [0] : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
    %1 = arith.addf %x, %0 : tensor<4x8xf32>
    // becomes, where %xb is %x in bf16 and %1 is read by another product
    %wb = arith.truncf %w : tensor<8x8xf32> to tensor<8x8xbf16>
    %0 = nd.dot_general %xb, %wb contract = [1] x [0] : tensor<4x8xbf16>, tensor<8x8xbf16> -> tensor<4x8xbf16>
    %xf = arith.extf %xb : tensor<4x8xbf16> to tensor<4x8xf32>
    %0f = arith.extf %0 : tensor<4x8xbf16> to tensor<4x8xf32>
    %1 = arith.addf %xf, %0f : tensor<4x8xf32>
    %1b = arith.truncf %1 : tensor<4x8xf32> to tensor<4x8xbf16>
    ```
  }];
  let dependentDialects = ["::nd::NDDialect", "::mlir::arith::ArithDialect"];
}

def AddLoss : Pass<"nd-add-loss", "::mlir::ModuleOp"> {
  let summary = "append the loss of a causal language model to @forward";
  let description = [{
    Where `@forward` returns results of kinds `loss_sum` and `loss_count`, they are the loss and nothing is added. Else
    the result of kind `logits` [B, S, V] gets softmax cross-entropy with a new input `labels` [B, S]: `loss_sum` is
    the sum of the tokens' losses, `loss_count` the number of labels that differ from the model's `ignore_index`. The
    loader has shifted the labels; the step never does. Afterwards `loss_sum` and `loss_count` are the function's only
    results. Weights with a dimension that the logits say is the vocabulary get its number as `nd.vocabulary`, and so do
    tables with as many rows.

    Refuses what training does not support yet: dropout with p > 0, by name and location.

    ```mlir
    func.func @forward(...) -> (tensor<2x8x512xf32> {nd.kind = "logits"})
    // becomes
    func.func @forward(..., %labels: tensor<2x8xi64> {nd.kind = "input", nd.name = "labels", nd.bound = 512 : i64})
        -> (tensor<f32> {nd.kind = "loss_sum"}, tensor<i32> {nd.kind = "loss_count"})
    ```
  }];
  let dependentDialects = ["::nd::NDDialect", "::mlir::arith::ArithDialect", "::mlir::func::FuncDialect"];
}

def AddMicrobatches : Pass<"nd-add-microbatches", "::mlir::ModuleOp"> {
  let summary = "make the inputs of @forward those of several microbatches";
  let description = [{
    Takes `@forward` with results `loss_sum` and `loss_count` on inputs of one microbatch. Every input gets a leading
    dimension of `count` microbatches, of which `nd.microbatch` gives the body its part. `loss_count` is computed from the
    inputs of all microbatches at once, before any of them runs: every token of the step weighs the same, however they are
    spread. A count that cannot be is an error. `loss_sum` stays that of one microbatch; `nd-build-backward` sums it, and
    the gradients.

    ```mlir
    func.func @forward(%x: tensor<2x8xf32> {nd.kind = "input"}, %labels: tensor<2xi64> {nd.kind = "input"})
        -> (tensor<f32> {nd.kind = "loss_sum"}, tensor<i32> {nd.kind = "loss_count"}) {
      %n = nd.reduce sum ... %labels
    // becomes, with count=4
    func.func @forward(%all_x: tensor<4x2x8xf32> ..., %all_labels: tensor<4x2xi64> ...) -> (...) {
      %x = nd.microbatch %all_x : tensor<4x2x8xf32> -> tensor<2x8xf32>
      %labels = nd.microbatch %all_labels : tensor<4x2xi64> -> tensor<2xi64>
      %n = nd.reduce sum ... %all_labels
    ```
  }];
  let options = [Option<"count", "count", "int64_t", "1", "microbatches of a step; 1: nothing changes">];
  let dependentDialects = ["::nd::NDDialect", "::mlir::arith::ArithDialect"];
}

def BuildBackward : Pass<"nd-build-backward", "::mlir::ModuleOp"> {
  let summary = "append the gradients of all trainable weights to @forward";
  let description = [{
    Takes `@forward` with results `loss_sum` and `loss_count`; the loss is their quotient (0 when nothing is counted).
    The function then returns the metrics `loss` and `tokens` and one result of kind `gradient` per trainable weight
    that the loss depends on, under the weight's name. The gradients are those of the mean loss: backward starts from
    1/count, so every gradient is a plain sum over tokens. Where the inputs are those of several microbatches
    (`nd-add-microbatches`), gradients (in at least f32) and the loss are summed over them by `nd.accumulate`.

    Operations are visited in reverse; each emits its own rule (`DifferentiableOpInterface`). Only values between a
    trainable weight and the loss are differentiated: frozen weights and integer paths cost nothing and need no rule.
    An operation without a rule on such a path is an error.

    ```mlir
    func.func @forward(%w: tensor<4xf32> {nd.kind = "weight", nd.name = "w"},
                       %x: tensor<4xf32> {nd.kind = "input", nd.name = "x"})
        -> (tensor<f32> {nd.kind = "loss_sum"}, tensor<i64> {nd.kind = "loss_count"})
    // becomes
    func.func @forward(...)
        -> (tensor<f32> {nd.kind = "metric", nd.name = "loss"}, tensor<i64> {nd.kind = "metric", nd.name = "tokens"},
            tensor<4xf32> {nd.kind = "gradient", nd.name = "w"})
    ```
  }];
  let dependentDialects = ["::nd::NDDialect", "::mlir::arith::ArithDialect", "::mlir::math::MathDialect"];
}

def Recompute : Pass<"nd-recompute", "::mlir::ModuleOp"> {
  let summary = "compute cheap forward values again in backward instead of keeping them";
  let description = [{
    Takes what `nd-build-backward` leaves. Where the backward's kernels read values of the forward that elementwise
    operations compute, those operations are copied beside their reader when that keeps fewer bytes alive from forward
    to backward (a minimum cut over the whole function). Values that GEMMs and other library calls read are in memory
    anyway, and serve as starting points. Copies carry `nd.recomputed`, so that they are never merged with their
    originals.

    ```mlir
    %t = math.tanh %x : tensor<8x16xf32>
    %y = arith.mulf %x, %t : tensor<8x16xf32>
    // ... backward
    %dx = arith.mulf %dy, %t : tensor<8x16xf32>
    // becomes, so that %x alone is kept
    %t2 = math.tanh %x {nd.recomputed} : tensor<8x16xf32>
    %dx = arith.mulf %dy, %t2 : tensor<8x16xf32>
    ```
  }];
}

def AddOptimizer : Pass<"nd-add-optimizer", "::mlir::ModuleOp"> {
  let summary = "append gradient clipping and parameter updates, and name the function @step";
  let description = [{
    Takes what `nd-build-backward` leaves. Adds the optimizer's state (`exp_avg` and `exp_avg_sq`, or `momentum`) and
    the step's scalars (`lr`, and for AdamW `bias1` = 1 - beta1^t and `sqrt_bias2` = sqrt(1 - beta2^t)) as arguments,
    and returns the metrics `loss`, `grad_norm`, `tokens`, `applied`, then the new value of each weight and state under
    the (kind, name) of its argument. `keep-gradients` also returns the gradients, before clipping.

    `grad_norm` is the root of the sum of the squares of all gradients. With `clip` > 0 the updates scale gradients by
    min(1, clip / (grad_norm + 1e-6)) and are applied when the norm is finite; with 0 they do not depend on the norm,
    so that each can run as soon as its gradient exists. In a step without any valid token nothing is applied. Weights
    with two or more dimensions in the user's model decay; `decay-all` and `no-decay` (globs over names) override.
  }];
  let options = [
    Option<"optimizer", "optimizer", "std::string", "\"adamw\"", "adamw or sgd">,
    Option<"beta1", "beta1", "double", "0.9", "decay rate of AdamW's first moment">,
    Option<"beta2", "beta2", "double", "0.999", "decay rate of AdamW's second moment">,
    Option<"eps", "eps", "double", "1e-8", "AdamW's epsilon">,
    Option<"weightDecay", "weight-decay", "double", "0.01", "weight decay">,
    Option<"momentum", "momentum", "double", "0.0", "momentum of SGD">,
    Option<"clip", "clip", "double", "1.0", "largest global gradient norm; 0: not clipped">,
    Option<"decayAll", "decay-all", "bool", "false", "decay weights with one dimension too">,
    ListOption<"noDecay", "no-decay", "std::string", "globs of names of weights that do not decay">,
    Option<"keepGradients", "keep-gradients", "bool", "false", "also return the gradients">];
  let dependentDialects = ["::nd::NDDialect", "::mlir::arith::ArithDialect", "::mlir::math::MathDialect"];
}

#endif // ND_TRAINING_PASSES_TD
