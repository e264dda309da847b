//===- Passes.td - Order and place of a step's memory -------*- tablegen -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_MEMORY_PASSES_TD
#define ND_MEMORY_PASSES_TD

include "mlir/Pass/PassBase.td"

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
    this order can be.

    ```mlir
    %x = rt.buffer : memref<16xf32>
    // becomes
    %x = rt.buffer at 4096 : memref<16xf32>
    ```
  }];
}

#endif // ND_MEMORY_PASSES_TD
