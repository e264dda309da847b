//===- Passes.td - Order and place of a step's memory -------*- tablegen -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_MEMORY_PASSES_TD
#define ND_MEMORY_PASSES_TD

include "mlir/Pass/PassBase.td"

def ChunkLoss : Pass<"nd-chunk-loss", "::mlir::ModuleOp"> {
  let summary = "computes logits, cross-entropy and their gradients for a chunk of tokens at a time";
  let description = [{
    For the program of a rank (or of one machine). The product that makes the logits, everything that is as wide as they
    are, and the products that use their gradient run for one chunk of tokens after the other, so that logits never exist
    whole; gradients of weights are summed over the chunks. Nothing is computed twice, and collectives over the ranks
    that share the vocabulary run per chunk, with the same bytes in all.

    `tokens` is `auto` (chunks where the logits of a rank would take more than 64 MiB; at most 64 of them), `off`, or the largest number of
    tokens of a chunk. Where operations do not allow it (they need all tokens at once, or the logits are a result),
    `auto` leaves the loss as it is, and a number is an error that names the operation. The module gets `nd.loss_chunk`,
    the number of tokens that a chunk has at most, and, where nothing else is as wide as the logits, promises that
    nothing will be (`nd.promises`, `nd-verify-footprint`).

    ```mlir
    %l = nd.dot_general %x, %w ... -> tensor<2x64x50257xf32>
    // becomes, with tokens=64
    %x0 = nd.slice %x ... {nd.chunk = 0} : tensor<2x64x32xf32> -> tensor<1x64x32xf32>
    %l0 = nd.dot_general %x0, %w ... {nd.chunk = 0} -> tensor<1x64x50257xf32>
    ...
    ```
  }];
  let options = [Option<"tokens", "tokens", "std::string", "\"auto\"", "auto, off, or the largest chunk in tokens">];
}

def NDScheduleForMemory : Pass<"nd-schedule-for-memory", "::mlir::func::FuncOp"> {
  let summary = "orders a step so that memory is freed early";
  let description = [{
    Keeps the order of the program, but for operations that need no new memory: an update of a parameter moves up to
    where its gradient is complete and all readers of the old value are behind it, so that the gradients of different
    layers can share memory, and a small result of large operands (a partial sum of the gradient norm) to where its
    operands are in the cache. A large result that is read much later, and takes much more memory than its operands, is
    computed right before its first reader. An operation that replaces a state comes after all that read the state's old
    value, where that is possible.

    ```mlir
    %g1 = nd.gemm ...            // gradient of %w1
    %g2 = nd.gemm ...            // gradient of %w2
    %n1 = nd.kernel(%w1, %g1) ...
    %n2 = nd.kernel(%w2, %g2) ...
    // becomes %g1, %n1, %g2, %n2
    ```
  }];
}

def RTPlanMemory : Pass<"rt-plan-memory", "::nd::rt::ProgramOp"> {
  let summary = "gives every buffer its offset in one arena";
  let description = [{
    First come scalars and metrics, in one block, then the other tensors of the program; behind them temporaries and
    outputs share memory by liveness, in the order of the program. All offsets are multiples of 64 bytes. The program
    gets `arena_bytes`, `fixed_bytes` (the tensors that never share), and `peak_live_bytes`, below which no arena of
    this order can be. Where reduce-scatters go over nodes with several ranks of a group on each, the arena ends with `staging_bytes` for
    the transport's partial sums (at most 2 MiB), live all the time.

    ```mlir
    %x = rt.buffer : memref<16xf32>
    // becomes
    %x = rt.buffer at 4096 : memref<16xf32>
    ```
  }];
}

def RTVerifyMemory : Pass<"rt-verify-memory", "::nd::rt::ProgramOp"> {
  let summary = "check that what is read has been written, and not been lost since";
  let description = [{
    Follows the program and whom each byte of the arena belongs to. Fails where an operation reads a buffer that nothing has written (a gather
    that starts behind its reader), or whose memory other buffers have got since (a reader behind the last one that the plan knew of, two buffers in one
    place), where an operation writes over what it reads, where a tensor of the program has not its value at the end of the step, and where a buffer
    lies behind the arena or in what of it is the transport's.

    That nobody touches what a collective moves until its wait is what `rt-verify-collectives` checks: with both, the result of every collective is there
    before it is read. Which value of a buffer a reader means nothing says: one in front of a reduction in place reads what is not reduced.

    ```mlir
    %a = rt.buffer at 0 : memref<4xf32>
    %b = rt.buffer at 0 : memref<4xf32>
    rt.fill_zero %a : memref<4xf32>
    rt.fill_zero %b : memref<4xf32>
    rt.copy %a to %c : memref<4xf32> to memref<4xf32>   // fails
    ```
  }];
}

def VerifyFootprint : Pass<"nd-verify-footprint", "::mlir::ModuleOp"> {
  let summary = "checks what a rank has in memory: no whole logits against a promise; lists scores";
  let description = [{
    For a rank's program right before `nd-to-rt`, where a result of an operation that is no view is a buffer, and what lies
    inside of an `nd.kernel` is none. `DimensionFlow` follows what every dimension is, from the inputs (batch, sequence)
    and from the weights that make logits (`nd.vocabulary`), by structure: dimensions that have equal sizes by chance are
    never taken for each other.

    The module's `nd.promises` says what passes have promised; a value that breaks a promise is an error of the compiler:

    - `chunked_tokens`, `chunked_width` (`nd-chunk-loss`): no value is as many tokens times as many words;
    - `vocabulary_width` (`nd-propagate-sharding`): none has more words.

    Nothing is promised where the program itself asks for whole logits (they are a result, an operation needs all words at
    once, an annotation keeps the vocabulary whole). The module gets `nd.footprint`, what reports list: values that have
    the sequence in two dimensions (`scores`: scores of an attention that is written out, general masks), and logits that
    all of a rank's tokens have at once (`logits`).

    ```mlir
    module attributes {nd.promises = {chunked_tokens = 128 : i64, chunked_width = 512 : i64}}
      %l = nd.gemm %x, %head transposed : tensor<128x64xf32>, tensor<512x64xf32> -> tensor<128x512xf32>
    // error: result 0 of 'nd.gemm', tensor<128x512xf32>, is 128 tokens x 512 words of the vocabulary ...
    ```
  }];
}

#endif // ND_MEMORY_PASSES_TD
