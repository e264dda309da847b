//===- Passes.td - What becomes of collectives --------------*- tablegen -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef ND_COLLECTIVES_PASSES_TD
#define ND_COLLECTIVES_PASSES_TD

include "mlir/Pass/PassBase.td"

def CombineCollectives : Pass<"nd-combine-collectives", "::mlir::ModuleOp"> {
  let summary = "make few large collectives of many small ones";
  let description = [{
    All-reduces, reduce-scatters and all-gathers of one group, reduction and element type (and equal further attributes) become one operation of several
    operands, in program order: that is the order in which gradients become ready. One is complete when it holds `bucket-bytes` (a larger tensor has one of
    its own) and stands where its last operand is ready. Operations that wait for it move behind it, unless a later collective of its kind waits for them:
    then it is complete before. All-reduces of single numbers stay apart.

    Gathers are there for their readers: one is complete before the first operation that waits for it. Gathers with one `nd.unit` are one
    whatever they hold, and stand where the first of them does: give the gathers of a block's forward one name and those of its backward another.
  }];
  let options = [Option<"bucketBytes", "bucket-bytes", "int64_t", "33554432", "bytes on a rank that complete a collective">];
  let dependentDialects = ["::nd::NDDialect"];
}

def VerifyCollectives : Pass<"rt-verify-collectives", "::mlir::ModuleOp"> {
  let summary = "check that the collectives of all ranks meet";
  let description = [{
    All ranks run one program, straight lines and loops of constant counts, so all start the same collectives in the same order, and so does every group.
    This checks what remains: each group is of axes of the mesh; sizes fit it, so that what a rank sends is what the others expect; a permutation sends each
    position's data to one position; a start has its one wait behind it in its own block, also in a loop; and until then nothing writes what it sends, and
    nothing reads or writes what it receives. Then no rank can wait for ever: take the first collective, in program order, that does not finish; all ranks
    have finished those before it, so every rank of its group comes to start it, and it finishes.
  }];
}

#endif // ND_COLLECTIVES_PASSES_TD
